"""`pairgen demo`: the whole way on the built-in games with a small real model."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import click

from pairgen.console import finish, json_option

SHOWN = 3


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("data/demo"), show_default=True)
@click.option(
    "--engine", type=click.Choice(["auto", "vllm", "transformers"]), default="transformers", show_default=True
)
@click.option("--limit", type=click.IntRange(0), default=0, help="Instances a game [all].")
@json_option
def command(out: Path, engine: str, limit: int, as_json: bool) -> None:
    """Play the built-in games with SmolLM2-135M on this machine and make pairs of what it won.

    Fetches the model (270 MB) once. Everything else is in the package; neither a GPU nor a checkout is needed.
    """
    from corruptions import STRATEGIES
    from pairgen.records import Pair
    from pairgen.store import read_table
    from pipelines import assemble, corrupt, fetch_model, session
    from pipelines.rollout_config import RolloutConfig

    started = time.monotonic()
    run, pairs = out / "run", out / "pairs"
    model = fetch_model.fetch()
    config = RolloutConfig(model=str(model), engine=engine, games=("demo",), limit=limit)
    rolled = session.roll_out(run, config, overwrite=run.exists())
    made = assemble.assemble(
        [run], pairs, corrupt.CorruptConfig(no_eval_split=True), STRATEGIES, overwrite=pairs.exists()
    )
    rows = read_table(pairs / "full" / "train.parquet", Pair) if made.pairs else []
    summary = {
        "run": str(run), "pairs_folder": str(pairs), "episodes": rolled["episodes"], "outcomes": rolled["outcomes"],
        "pairs": made.pairs, "train": made.train, "test": made.test, "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    finish(summary, [*session.lines(run, rolled)[:-2], *_shown(rows), *_next(run, pairs, summary)], as_json=as_json)


def _shown(rows: list[Any]) -> list[str]:
    """Some pairs beside each other, of different games as far as they go."""
    from pipelines.show import side_by_side

    width = min(120, shutil.get_terminal_size((100, 24)).columns)
    first = {row.game: row for row in reversed(rows)}
    chosen = [*first.values(), *(row for row in rows if row not in first.values())][:SHOWN]
    return [line for row in chosen for line in ("", "─" * width, *side_by_side(row, width=width))]


def _next(run: Path, pairs: Path, summary: dict[str, Any]) -> list[str]:
    played, made, more = (shlex.quote(str(path)) for path in (run, pairs, f"{pairs}-looping"))
    look = f"from pairgen import load_pairs; print(load_pairs({str(pairs)!r}))"
    return [
        "",
        f"{summary['pairs']} pairs from {summary['episodes']} episodes in {summary['seconds']:.0f} s: {pairs}",
        f"  look at them   python -c {shlex.quote(look)}",
        f"  other pairs    pairgen corrupt {played} --strategy looping --no-eval-split --out {more}",
        f"  before a push  pairgen push {made} USER/NAME --dry-run",
        "  your model     pairgen rollout --model CHECKPOINT --clembench CLEMBENCH --out RUN",
    ]
