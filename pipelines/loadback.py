"""Loads a data set from the Hub as a stranger would: `datasets`, a process of its own, caches that start empty.

Run as a program it prints the fingerprints of what it loaded; `load` starts it and removes its caches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pairgen.console import say
from pairgen.errors import PairgenError
from pipelines.fingerprint import BATCH, CONFIGS, Table, of_rows
from pipelines.patience import Patience

CACHES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "HF_XET_CACHE", "HF_ASSETS_CACHE")
"""Where the clients keep files; the token is found where it always is."""


def load(repo: str, revision: str, wait: float) -> dict[str, Table]:
    """The fingerprint of each table of the data set at this revision; busy answers are waited for, `wait` s in all.

    Raises PairgenError where it does not load.
    """
    with tempfile.TemporaryDirectory(prefix="pairgen-loadback-") as folder:
        caches = {name: str(Path(folder) / name.lower()) for name in CACHES}
        command = [sys.executable, "-m", "pipelines.loadback", repo, revision, str(wait)]
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, **caches, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    if done.returncode or "tables" not in answer:
        raise PairgenError(answer.get("error") or f"the loading process ended with code {done.returncode}")
    return {name: Table(rows, tuple(columns), sha256) for name, (rows, columns, sha256) in answer["tables"].items()}


def fingerprints(repo: str, revision: str) -> dict[str, Table]:
    """Every configuration of a data set on the Hub, loaded with `datasets` into the caches of this process."""
    import datasets

    found = {}
    for config in CONFIGS:
        for side, loaded in datasets.load_dataset(repo, config, revision=revision).items():
            table: Any = loaded.with_format("arrow")
            batches = (batch.to_pylist() for batch in table.iter(BATCH))
            found[f"{config}/{side}.parquet"] = of_rows(batches, loaded.features.arrow_schema)
    return found


def main(repo: str, revision: str, wait: str) -> int:
    import datasets

    from pipelines.hub import told

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        tables = Patience(float(wait), say).call("loading it back", lambda: fingerprints(repo, revision))
    except Exception as error:
        print(json.dumps({"error": told(error)}))
        return 1
    print(json.dumps({"tables": tables}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
