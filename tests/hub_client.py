"""A process that has imported the clients once and forks for each command, as HF_ENDPOINT is read at import.

Started with `python hub_client.py`; reads one JSON object a line, `{"argv": [...]}` for pairgen or `{"code": "..."}`,
with `env`, `cwd`, `out` and `err` (files), and answers with the process id, then with the exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def summary(self) -> dict:
        return json.loads(self.stdout.splitlines()[-1])


class Client:
    """The parent's side. `env` is what every command has; `home` is where the clients keep things."""

    def __init__(self, endpoint: str, home: Path, env: dict[str, str]):
        self.home = home
        home.mkdir(exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING_FACE", "PAIRGEN"))}
        known = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home / "hf"), "HF_HUB_DISABLE_XET": "1", "TMPDIR": str(home)}
        self.env = {**clean, **known, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env}
        self.process = subprocess.Popen(
            [sys.executable, __file__], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.count = 0

    def start(self, cwd: Path, *argv: str, env: dict[str, str] | None = None, code: str = "") -> tuple[int, Path]:
        """Start `pairgen ARGV`, or Python `code`; its process id, and the path that its output goes to."""
        self.count += 1
        place = self.home / f"said-{self.count}"
        asked = {"argv": argv, "code": code, "env": env or {}, "cwd": str(cwd), "place": str(place)}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), place

    def end(self, place: Path) -> Ended:
        code = int(self.process.stdout.readline())
        return Ended(code, place.with_suffix(".out").read_text(), place.with_suffix(".err").read_text())

    def call(self, cwd: Path, *argv: str, **options: object) -> Ended:
        return self.end(self.start(cwd, *argv, **options)[1])  # type: ignore[arg-type]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(20)


def serve() -> None:
    import datasets
    import huggingface_hub
    import pyarrow.parquet
    import yaml

    from pairgen.cli import main
    from pipelines import push

    assert datasets and huggingface_hub.HfApi and pyarrow.parquet and yaml and push
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child:
            print(child, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        for number, ending in ((1, "out"), (2, "err")):
            file = os.open(f"{asked['place']}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        code = 0
        try:
            if asked["code"]:
                exec(compile(asked["code"], "<code>", "exec"), {"__name__": "__main__"})
            else:
                main(asked["argv"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
