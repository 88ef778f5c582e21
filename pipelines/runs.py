"""The run folder of any command that makes one: opened with its configuration, ended with tables and manifest."""

from __future__ import annotations

import contextlib
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairgen import __version__, store
from pairgen.records import SCHEMA_VERSION, Episode
from pipelines.scoring import Result, result_of, score, summary


def saved(command: str, config: dict[str, Any]) -> dict[str, Any]:
    """What `run.json` holds, and every manifest begins with."""
    return {"command": command, "pairgen_version": __version__, "schema_version": SCHEMA_VERSION, "config": config}


@contextlib.contextmanager
def open_run(run: Path, command: str, config: dict[str, Any], *, overwrite: bool) -> Iterator[store.Journal]:
    """The journal of a new run in the folder `run`, held for this process, with `run.json` written.

    A folder that this call made is taken away when the block fails. Raises UsageProblem where `run` cannot be written.
    """
    store.check_folder(run, resume=False, overwrite=overwrite)
    made = not run.exists()
    try:
        with store.lock_folder(run):
            store.claim_folder(run, resume=False, overwrite=overwrite)
            store.write_json(run / store.CONFIG, saved(command, config))
            journal = store.Journal(run)
            try:
                yield journal
            finally:
                journal.close()
    except BaseException:
        if made:
            shutil.rmtree(run, ignore_errors=True)
        raise


def finish_run(run: Path, command: str, config: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Derive the tables from the journal and write the manifest, last; returns it.

    It holds the configuration, the numbers of all episodes, `sources` with the numbers of each source, and `extra`.
    """
    results: list[Result] = []

    def noted() -> Iterator[Episode]:
        for episode in store.stream_episodes(run):
            results.append(result_of(episode))
            yield episode

    store.write_tables(run, noted())
    manifest = {**saved(command, config), **summary(score(results)), "sources": _by_source(results), **extra}
    store.write_json(run / store.MANIFEST, manifest)
    return manifest


def _by_source(results: list[Result]) -> dict[str, Any]:
    sources: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        sources[result.source].append(result)
    names = ("episodes", "average_played", "average_quality", "clemscore")
    numbers = {source: summary(score(sources[source])) for source in sorted(sources)}
    return {source: {name: found[name] for name in names} for source, found in numbers.items()}
