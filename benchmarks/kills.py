"""A rollout that is killed again and again must end as if nothing had happened.

Plays a run undisturbed; plays it again while killing (SIGKILL) the driver, a game worker or the engine at random
moments, resuming after each end; compares everything that both left. Exits 1 where they differ.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
import polars as pl
from processes import command_of, descendants, workers
from scripted_server import MODEL, ServerProcess, demo_instances

from pairgen.console import table
from pairgen.records import EpisodeKey
from pipelines.session import RESULTS

KINDS = ("driver", "worker", "engine")
CLEM_MAY_DIFFER = frozenset({"timestamp"})
"""Keys of clemcore's own files that say when something was. Nothing else may differ, there or in the tables."""
MANIFEST_MAY_DIFFER = frozenset({"last_session", "base_url"})
ERROR = b'"outcome":"error"'
PATIENCE_S = 10.0


class Check(NamedTuple):
    """One thing that must be so; `problem` is empty where it is."""

    what: str
    found: str
    problem: str


class Manner(NamedTuple):
    """At most `pause` seconds pass from a moment to its kill, and at most `outage` until a server is there again."""

    chance: random.Random
    pause: float
    outage: float


@click.command()
@click.option("--kills", default=30, show_default=True, help="In all; a third each of driver, worker and engine.")
@click.option("--limit", default=0, show_default=True, help="Instances a game [all].")
@click.option("--samples", default=3, show_default=True)
@click.option("--concurrency", default=8, show_default=True)
@click.option("--latency", default=0.5, show_default=True, help="Seconds that the scripted server takes for a reply.")
@click.option("--outage", default=6.0, show_default=True, help="Most seconds that the killed server stays away.")
@click.option("--restarts", default=3, show_default=True, help="The rollout's own option.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--real", is_flag=True, help="vLLM in the driver's process with SmolLM2: compares which episodes there are."
)
def main(
    kills: int,
    limit: int,
    samples: int,
    concurrency: int,
    latency: float,
    outage: float,
    restarts: int,
    seed: int,
    real: bool,
) -> None:
    """Play, kill, resume, compare."""
    chance = random.Random(seed)
    manner = Manner(chance, 2 * latency, outage)
    kinds = [KINDS[i % len(KINDS)] for i in range(kills)]
    chance.shuffle(kinds)
    total = samples * demo_instances(limit)
    moments = sorted(chance.randrange(total) for _ in kinds)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        folder = Path(name)
        command = [sys.executable, "-m", "pairgen.cli", "rollout", "--games", "demo", "--limit", str(limit)]
        command += ["--samples", str(samples), "--temperature", "0.7" if samples > 1 else "0"]
        command += ["--concurrency", str(concurrency), "--restarts", str(restarts)]
        runs = []
        for run in ("undisturbed", "killed"):
            server = None if real and run == "killed" else ServerProcess(folder, latency_s=latency)
            engine = _vllm() if server is None else ["--base-url", server.url, "--model", MODEL]
            runs.append(Killed([*command, *engine], folder / run, server, manner))
            if server is not None:
                server.start()
                stack.callback(server.kill)
        calm, killed = runs
        playing = pool.submit(calm.play, [])
        killed.play(list(zip(kinds, moments, strict=True)))
        playing.result()
        facts, checks = killed.facts(), [killed.check(), *compare(calm.run, killed.run, equal_content=not real)]
    print(f"undisturbed: {total} episodes in {calm.seconds:.0f} s")
    print("\n".join(table(facts, ("killed", ""))), end="\n\n")
    print("\n".join(table([(c.what, c.found, c.problem or "as it must be") for c in checks], ("what", "found", ""))))
    sys.exit(1 if any(check.problem for check in checks) else 0)


def _vllm() -> list[str]:
    from pipelines.fetch_model import fetch

    return ["--engine", "vllm", "--model", str(fetch()), "--max-tokens", "40", "--max-model-len", "2048"]


class Killed:
    """A run in `run`, played by as many processes as it takes; with a server, that is started again after each kill."""

    def __init__(self, command: list[str], run: Path, server: ServerProcess | None, manner: Manner):
        self._command, self.run, self._server, self._manner = command, run, server, manner
        self._driver: subprocess.Popen[bytes] | None = None
        self._server_back = 0.0
        self.kills: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.left: list[str] = []
        self.seconds = 0.0

    def play(self, kills: list[tuple[str, int]]) -> None:
        """Play to the end. A kill comes up to `pause` seconds after that many episodes were finished."""
        started = time.monotonic()
        try:
            for number, (kind, moment) in enumerate(kills, 1):
                while self._finished() < moment:
                    self._tend()
                pause = time.monotonic() + self._manner.chance.random() * self._manner.pause
                while time.monotonic() < pause or not (victims := self._victims(kind)):
                    self._tend()
                seconds = time.monotonic() - started
                print(
                    f"{number}: {kind} after {self._finished()} episodes, {seconds:.0f} s", file=sys.stderr, flush=True
                )
                self._kill(kind, self._manner.chance.choice(victims))
            while not self.ends["finished"]:
                self._tend()
        finally:
            if self._driver is not None:
                self._driver.kill()
                self._driver.wait()
        self.seconds = time.monotonic() - started

    def _finished(self) -> int:
        path = self.run / "episodes.jsonl"
        lines = path.read_bytes() if path.exists() else b""
        return lines.count(b"\n") - lines.count(ERROR)

    def _tend(self) -> None:
        """See that a driver lives, and after its outage a server; then wait a moment."""
        time.sleep(0.02)
        if self._server and self._server_back and time.monotonic() >= self._server_back:
            self._server.start()
            self._server_back = 0.0
        if self._driver is None:
            more = ["--out", str(self.run), *(["--resume"] if self.run.exists() else [])]
            with self._said.open("ab") as said:
                self._driver = subprocess.Popen([*self._command, *more], stdout=said, stderr=said)
        elif (code := self._driver.poll()) is not None and not self._server_back:
            found = journal(self.run)
            owed = {key for key, _ in found} - {key for key, e in found if e["outcome"] != "error"}
            self.ends["stopped by itself" if code else "finished with errors" if owed else "finished"] += 1
            said = self._said.read_text()
            torn = self._server is not None and "Traceback" in said  # vLLM logs its own death with one
            if code not in (0, 1) or torn or self.ends.total() > 100:
                raise SystemExit(f"the driver ended with {code}:\n{said[-4000:]}")
            self._driver = None

    @property
    def _said(self) -> Path:
        return self.run.with_suffix(".said")

    def _victims(self, kind: str) -> list[int]:
        """The processes of a kind that live now; those of the engine within the driver where there is no server."""
        if self.ends["finished"]:
            raise SystemExit(
                "the run ended before it was killed as often as asked: use more --samples or fewer --kills"
            )
        if kind == "engine" and self._server:
            return [] if self._server_back else [self._server.pid]
        if self._driver is None or self._driver.poll() is not None:
            return []
        if kind == "driver":
            return [self._driver.pid]
        if kind == "worker":
            return workers(self._driver.pid)
        return [pid for pid in descendants(self._driver.pid) if "EngineCore" in command_of(pid)]

    def _kill(self, kind: str, victim: int) -> None:
        self.kills[kind] += 1
        if kind == "engine" and self._server:
            self._server.kill()
            self._server_back = time.monotonic() + self._manner.chance.random() * self._manner.outage
        elif kind == "driver":
            assert self._driver is not None
            children = {pid: command_of(pid) for pid in descendants(victim)}
            self._driver.kill()
            self._driver.wait()
            self._driver = None
            self._bury(children)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

    def _bury(self, children: dict[int, str]) -> None:
        """The processes of a dead driver have some seconds to end by themselves."""
        deadline = time.monotonic() + PATIENCE_S
        while any(command_of(pid) == name for pid, name in children.items()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid, name in children.items():
            if name and command_of(pid) == name:
                self.left.append(name)
                os.kill(pid, signal.SIGKILL)

    def facts(self) -> list[tuple[str, str]]:
        kills, ends = (", ".join(f"{n} {k}" for k, n in sorted(c.items())) for c in (self.kills, self.ends))
        failed = sum(episode["outcome"] == "error" for _, episode in journal(self.run))
        return [
            ("kills", kills),
            ("other ends of the driver", ends),
            ("episodes that ended as error and were played again", f"{failed}"),
            ("seconds", f"{self.seconds:.0f}"),
        ]

    def check(self) -> Check:
        left = ", ".join(self.left)
        return Check("processes that dead drivers left behind", f"{len(self.left)}", left[:80])


def journal(run: Path) -> list[tuple[EpisodeKey, dict[str, Any]]]:
    """Every whole line of a journal, as it stands there."""
    path = run / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    episodes = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [(EpisodeKey(*(e[name] for name in EpisodeKey._fields)), e) for e in episodes]


def compare(calm: Path, killed: Path, *, equal_content: bool) -> list[Check]:
    """Which episodes there are, and with `equal_content` all that was recorded of them."""
    expected = {key for key, _ in journal(calm)}
    final = Counter(key for key, episode in journal(killed) if episode["outcome"] != "error")
    twice = [key for key, count in final.items() if count > 1]
    odd = expected ^ set(final)
    table_keys = pl.read_parquet(killed / "episodes.parquet", columns=list(EpisodeKey._fields)).rows()
    rows = [
        Check("journal: episodes played twice", f"{len(twice)}", f"{twice[:3]}" if twice else ""),
        Check(
            "journal: episodes missing or too many", f"{len(odd)} of {len(expected)}", f"{sorted(odd)[:3]}" * bool(odd)
        ),
        _same("table: episodes once each", sorted(expected), sorted(EpisodeKey(*key) for key in table_keys)),
        _same(
            "clem: scored episodes", *({p for p in _clem(run) if p.endswith("scores.json")} for run in (calm, killed))
        ),
    ]
    if equal_content:
        lines = [{key: e for key, e in journal(run) if e["outcome"] != "error"} for run in (calm, killed)]
        rows.append(_same("journal: every field of every episode", *lines))
        for name in ("episodes", "moves"):
            rows.append(_same(f"{name}.parquet: every row", *(_rows(run, name) for run in (calm, killed))))  # noqa: PERF401
        rows.append(_same("manifest, but last_session and base_url", *(_manifest(run) for run in (calm, killed))))
        rows.append(_same("clem: every file, but timestamps", *(_clem_content(run) for run in (calm, killed))))
    return rows


def _same(what: str, calm: Any, killed: Any) -> Check:
    """Whether two collections are equal; names the first that is not."""
    if calm == killed:
        return Check(what, f"{len(calm)} equal", "")
    if isinstance(calm, dict) and isinstance(killed, dict):
        different = [key for key in sorted({*calm, *killed}) if calm.get(key) != killed.get(key)]
    else:
        different = [one for one in calm if one not in killed] + [one for one in killed if one not in calm]
    return Check(what, f"{len(different)} of {len(calm)} differ", str(different[:1])[:200] or "another order")


def _clem(run: Path) -> dict[str, Path]:
    """The files of clemcore's layout by their place, the model's name left out of it."""
    found = {}
    for path in (run / RESULTS).rglob("*"):
        model, *place = path.relative_to(run / RESULTS).parts
        if path.is_file():
            found["/".join((model.partition(".sample")[2], *place))] = path
    return found


def _clem_content(run: Path) -> dict[str, Any]:
    return {place: _without(json.loads(path.read_text()), CLEM_MAY_DIFFER) for place, path in _clem(run).items()}


def _manifest(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = _without(json.loads((run / "manifest.json").read_text()), MANIFEST_MAY_DIFFER)
    return found


def _rows(run: Path, name: str) -> list[tuple[Any, ...]]:
    return pl.read_parquet(run / f"{name}.parquet").rows()


def _without(data: Any, names: frozenset[str]) -> Any:
    if isinstance(data, dict):
        return {key: _without(value, names) for key, value in data.items() if key not in names}
    return [_without(one, names) for one in data] if isinstance(data, list) else data


if __name__ == "__main__":
    main()
