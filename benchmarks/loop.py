"""One round of the whole chain on the demo games, seed by seed: does training on own pairs help on held-out instances?

A third of the demo instances is held out. The model plays them; then it plays the others, its won moves become pairs,
it is trained on them (`pairgen dpo --merge`, and as the control `pairgen sft --from PAIRS --merge` on the chosen sides
alone), and each trained model plays the held-out instances in the same way. Prints clemscore before and after.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click

from pairgen.clem.client import DEMO_GAMES
from pairgen.console import say, table
from pairgen.store import write_json
from pipelines.fetch_model import fetch

HELD_OUT = 3
"""Every third instance of an experiment is held out."""


class Round(NamedTuple):
    """What every seed does: arguments for the commands of the chain, as on their command lines."""

    model: str
    samples: int
    rollout: tuple[str, ...]
    corrupt: tuple[str, ...]
    dpo: tuple[str, ...]
    sft: tuple[str, ...]


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A folder for all that is made.")
@click.option("--model", default="", help="A checkpoint folder [SmolLM2-135M-Instruct].")
@click.option("--seeds", default="1,2,3", show_default=True)
@click.option("--samples", default=8, show_default=True, help="Episodes an instance, for training and for judging.")
@click.option("--rollout", default="--temperature 0.8 --max-tokens 100 --concurrency 256", show_default=True)
@click.option("--corrupt", default="--strategy verbose --strategy format_break --strategy role_bleed",
              show_default=True)  # fmt: skip
@click.option("--dpo", default="", help="More options of pairgen dpo.")
@click.option("--sft", default="", help="More options of pairgen sft.")
@click.option("--at-once", default=1, show_default=True, help="Seeds that run at the same time.")
def main(
    out: Path, model: str, seeds: str, samples: int, rollout: str, corrupt: str, dpo: str, sft: str, at_once: int
) -> None:
    """Measure and print."""
    out.mkdir(parents=True)
    held_out(out / "held-out.jsonl")
    chain = Round(model or str(fetch()), samples, *(tuple(shlex.split(text)) for text in (rollout, corrupt, dpo, sft)))
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda seed: one_seed(out, int(seed), chain), seeds.split(",")))
    write_json(out / "results.json", {"seeds": seeds.split(","), "results": results})
    report(results)


def held_out(path: Path) -> None:
    """The evaluation instances, as a file for --eval-keys."""
    rows = []
    for file in sorted(DEMO_GAMES.glob("*/in/instances.json")):
        for experiment in json.loads(file.read_text())["experiments"]:
            for number, instance in enumerate(experiment["game_instances"]):
                if number % HELD_OUT == HELD_OUT - 1:
                    key = {"game": file.parent.parent.name, "experiment": experiment["name"]}
                    rows.append(json.dumps({**key, "task_id": instance["game_id"]}) + "\n")
    path.write_text("".join(rows))


def one_seed(out: Path, seed: int, chain: Round) -> list[dict[str, Any]]:
    """The three plays of the held-out instances: before, after DPO, after SFT on the chosen sides."""
    folder, keys = out / f"seed{seed}", ("--eval-keys", str(out / "held-out.jsonl"))
    plays = (*chain.rollout, "--samples", str(chain.samples), "--seed", str(seed), *keys)

    def judged(name: str, model: str) -> dict[str, Any]:
        at = ("--model", model, "--out", str(folder / name), "--only-eval")
        return {**pairgen(folder, name, "rollout", *at, *plays), "model": name}

    before = judged("before", chain.model)
    pairgen(folder, "play", "rollout", "--model", chain.model, "--out", str(folder / "play"), "--exclude-eval", *plays)
    pairs = str(folder / "pairs")
    made = pairgen(folder, "pairs", "corrupt", str(folder / "play"), "--out", pairs, "--seed", str(seed), *keys,
                   *chain.corrupt)  # fmt: skip
    say(f"seed {seed}: {made.get('pairs')} pairs")
    trained = ("--model", chain.model, "--merge", "--seed", str(seed))
    after = []
    for name, words in (("dpo", ("dpo", pairs, *chain.dpo)), ("sft", ("sft", "--from", pairs, *chain.sft))):
        made = pairgen(folder, f"train-{name}", *words, "--out", str(folder / name), *trained)
        after.append({**judged(f"after-{name}", made["merged"]), "training": made})
    return [before, *after]


def pairgen(folder: Path, name: str, *words: str) -> dict[str, Any]:
    """Run one command of pairgen, and give its summary. Its messages are in NAME.log."""
    folder.mkdir(exist_ok=True)
    started = time.monotonic()
    with (folder / f"{name}.log").open("w") as log:
        log.write(shlex.join(("pairgen", *words)) + "\n")
        log.flush()
        command = [sys.executable, "-m", "pairgen.cli", *words, "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)} ended with {done.returncode}: see {folder / name}.log")
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seconds = time.monotonic() - started
    say(f"{folder.name} {name}: {seconds:.0f} s")
    return {**summary, "wall_s": round(seconds, 1)}


def report(results: Sequence[Sequence[dict[str, Any]]]) -> None:
    """A row a seed and model, then the means over the seeds."""
    rows: list[tuple[str, ...]] = []
    for number, result in enumerate(results, 1):
        rows += [(str(number), r["model"], *map(_two, _scores(r)), f"{r['wall_s']:.0f} s") for r in result]
    for place in range(len(results[0])):
        scores = list(zip(*(_scores(result[place]) for result in results), strict=True))
        spread = statistics.stdev(scores[0]) if len(results) > 1 else 0.0
        means = (_two(statistics.mean(column)) for column in scores)
        rows.append(("mean", results[0][place]["model"], *means, f"clemscore ± {spread:.2f}"))
    print("\n".join(table(rows, ("seed", "model", "clemscore", "% played", "quality", "wall-clock"))))


def _scores(result: dict[str, Any]) -> tuple[float, float, float]:
    return result["clemscore"], result["average_played"], result["average_quality"]


def _two(value: float) -> str:
    return f"{value:.2f}"


if __name__ == "__main__":
    main()
