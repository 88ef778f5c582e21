"""`pairgen corrupt`: parse, make the pairs, write them, print."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pairgen.console import Number, finish, json_option, table
from pairgen.errors import PairgenError

if TYPE_CHECKING:
    from pairgen.strategy import Strategy
    from pipelines.manifest import Manifest

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
ENGINES = ("auto", "vllm", "openai", "transformers", "scripted")
ANSWERING = ("model", "engine", "base_url", "concurrency", "max_model_len", "engine_arg", "judge", "judge_price")
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the pair set [data/RUN-pairs].")
@click.option(
    "--strategy", multiple=True, default=("verbose",), show_default=True, metavar="NAME[:WEIGHT][:KEY=VALUE]",
    help="How the rejected side is made; repeatable, see --list.",
)  # fmt: skip
@click.option("--style", default="", help="The style of every strategy that has styles, see --list.")
@click.option("--list", "show", is_flag=True, help="Describe the strategies, and do nothing else.")
@click.option("--games", multiple=True, help="These games alone; repeatable, or separated by commas [all].")
@click.option(
    "--per-player", type=click.IntRange(0), default=2, show_default=True, help="Moves a player and episode; 0: all."
)
@click.option(
    "--moves-per-game", type=click.IntRange(0), default=0,
    help="Moves a game to make pairs of, which bounds what models are asked and game masters judge [all].",
)  # fmt: skip
@click.option("--per-instance", type=click.IntRange(0), default=0, help="Pairs an instance, in the end [all].")
@click.option("--per-game", type=click.IntRange(0), default=0, help="Pairs a game, in the end [all].")
@click.option(
    "--per-strategy", multiple=True, metavar="NAME:WEIGHT",
    help="How the pairs are shared out in the end; 1 for strategies not named; repeatable [as they are].",
)  # fmt: skip
@click.option(
    "--total", type=click.IntRange(0), default=0, help="Pairs in all, games and strategies in proportion [all]."
)
@click.option(
    "--max-per-completion", type=click.IntRange(0), default=2, show_default=True,
    help="Prompts that a role may give the same reply to, a strategy; 0: any.",
)  # fmt: skip
@click.option("--max-per-prompt", type=click.IntRange(0), default=0, help="Pairs of a prompt and strategy [all].")
@click.option(
    "--near", type=Number(0, 1), default=0.9, show_default=True,
    help="Likeness of prompts and replies from which two pairs count as one; 0: equal ones alone.",
)  # fmt: skip
@click.option(
    "--max-shortcut", type=Number(0, 1, max_open=True), default=0.0,
    help="Take pairs out until 'the longer side loses' is right in no more than this share, such as 0.8 [none].",
)  # fmt: skip
@click.option("--tokenizer", default="", metavar="MODEL", help="Check the pairs in tokens of this model.")
@click.option("--max-length", type=click.IntRange(0), default=0, help="Drop what is longer in tokens [nothing].")
@click.option(
    "--clembench", type=FOLDER, default=None,
    help="The checkout whose game masters judge both sides [the one that the run was played from, CLEMBENCH_HOME].",
)  # fmt: skip
@click.option("--verify/--no-verify", default=True, show_default=True, help="Put both sides to the game master.")
@click.option(
    "--require-violation/--no-require-violation", default=True, show_default=True,
    help="Of strategies that break rules, keep what the game master rejects (see --list).",
)  # fmt: skip
@click.option(
    "--require-accepted-chosen/--no-require-accepted-chosen", default=True, show_default=True,
    help="Drop pairs whose chosen side the game master does not accept.",
)  # fmt: skip
@click.option("--require-verified", is_flag=True, help="Drop pairs that no game master could judge.")
@click.option(
    "--test-size",
    type=Number(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of the pairs.",
)
@click.option("--seed", type=int, default=42, show_default=True)
@click.option(
    "--eval-keys", type=FILE, multiple=True,
    help="Keep out the instances in this .jsonl, .csv or .parquet file (game, experiment, task_id); repeatable.",
)  # fmt: skip
@click.option(
    "--eval-split", default="", metavar="REPO[:CONFIG[:SPLIT]][@REVISION]",
    help="Keep out the instances of this split on the Hub [the playpen validation split, if nothing else is given].",
)  # fmt: skip
@click.option(
    "--eval-results", type=FOLDER, multiple=True, help="Keep out the instances of these clembench results; repeatable."
)
@click.option("--no-eval-split", is_flag=True, help="Keep nothing out: the pairs are never to be judged on it.")
@click.option("--model", default="", help="Who is asked by ramble: folder, Hub id or name [the model that played].")
@click.option("--engine", type=click.Choice(ENGINES), default=None, help="What serves that model [as in the run].")
@click.option("--base-url", multiple=True, help="A vLLM or SGLang server that has that model; repeatable.")
@click.option("--concurrency", type=click.IntRange(1), default=64, show_default=True, help="Replies asked for at once.")
@click.option("--max-model-len", type=click.IntRange(1), default=None, help="Context in tokens [as in the run].")
@click.option("--engine-arg", multiple=True, metavar="KEY=VALUE", help="Any argument of its engine; repeatable.")
@click.option(
    "--judge", default="", metavar="MODEL[@URL]",
    help="Who is asked by corrected, at any OpenAI-compatible server [OPENAI_BASE_URL; key from OPENAI_API_KEY].",
)  # fmt: skip
@click.option("--judge-price", default="", metavar="IN,OUT", help="What a million of its tokens cost, to tell the sum.")
@click.option("--license", default="apache-2.0", show_default=True, help="License on the card, as the Hub names it.")
@click.option("--overwrite", is_flag=True, help="Replace the pair set in --out.")
@json_option
def command(
    runs: tuple[Path, ...], out: Path | None, show: bool, eval_keys: tuple[Path, ...], eval_results: tuple[Path, ...],
    clembench: Path | None, tokenizer: str, overwrite: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Make preference pairs of the moves in one run or more.

    What a strategy asks of a model (ramble) or a judge (corrected) is kept in the first run's folder and never asked
    twice.
    """
    from corruptions import STRATEGIES

    if show:
        finish({"strategies": _listed(STRATEGIES.values())}, _described(STRATEGIES.values()), as_json=as_json)
        return
    if not runs:
        raise click.UsageError("Give the folder of a run, as pairgen rollout or pairgen import made it.")

    from pipelines import answerers, assemble, corrupt, funnel

    answering = answerers.Answering(**{name: options.pop(name) for name in ANSWERING})
    options["games"] = tuple(name.strip() for entry in options["games"] for name in entry.split(",") if name.strip())
    config = corrupt.CorruptConfig(
        eval_keys=tuple(p.name for p in eval_keys),
        eval_results=tuple(p.resolve().name for p in eval_results),
        model=answerers.public_name(answering.model),
        judge=answering.judge.partition("@http")[0],
        tokenizer=answerers.public_name(tokenizer),
        **options,
    )
    out = out or Path("data") / f"{runs[0].resolve().name}-pairs"
    made = assemble.assemble(
        runs, out, config, STRATEGIES, clembench=clembench, eval_keys=eval_keys, eval_results=eval_results,
        overwrite=overwrite, answering=answering, tokenizer=tokenizer,
    )  # fmt: skip
    finish(_summary(made, out), _lines(made, out), as_json=as_json)
    if not made.pairs:
        raise PairgenError(funnel.why_empty(made.funnel))


def _listed(strategies: Iterable[Strategy]) -> list[dict[str, Any]]:
    return [
        {"name": s.name, "summary": s.summary, "options": dict(s.options), "requires_violation": s.requires_violation}
        for s in strategies
    ]


def _described(strategies: Iterable[Strategy]) -> list[str]:
    lines = []
    for strategy in strategies:
        lines.append(f"{strategy.name}: {strategy.summary}")
        lines += [f"    {strategy.name}:{key}=…  {text}" for key, text in strategy.options.items()]
    return lines


def _summary(made: Manifest, out: Path) -> dict[str, Any]:
    from pairgen.records import to_dict
    from pipelines.funnel import count_reasons

    by_game: dict[str, int] = {}
    for cell in made.table:
        by_game[cell.game] = by_game.get(cell.game, 0) + cell.train + cell.test
    return {
        "pairs": made.pairs, "train": made.train, "test": made.test, "pairs_by_game": by_game,
        "verdicts": to_dict(made.verdicts), "dropped": count_reasons(made.funnel), "funnel": to_dict(made.funnel), 
        "removed": len(made.evaluation.removed), "drafts": to_dict(made.drafts), "quality": to_dict(made.quality),
        "content": made.content, "out": str(out),
    }  # fmt: skip


def _lines(made: Manifest, out: Path) -> list[str]:
    from pipelines.funnel import meaning
    from pipelines.quality_text import quality_lines

    lines = table(
        [(s.stage, s.unit, s.entered, s.kept, s.entered - s.kept) for s in made.funnel],
        ("stage", "of", "in", "kept", "dropped"),
    )
    lines += [
        f"  {s.stage}: {r.count} {r.reason} ({meaning(r.reason)})" for s in made.funnel for r in s.dropped
    ]  # fmt: skip
    if not made.pairs:
        return [*lines, "", f"The reasons, row by row, are in {out}/dropped.parquet."]
    cells = [(c.game, c.strategy, c.train, c.test) for c in made.table]
    lines += ["", *table(cells, ("game", "strategy", "train", "test")), ""]
    lines += quality_lines(made.quality)
    if not made.test and made.config.test_size:
        lines.append("All pairs are of one instance, so there is no test side.")
    return [*lines, f"{made.pairs} pairs ({made.train} train, {made.test} test) are in {out}"]
