"""`pairgen sft`: parse, train, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.commands.training import training_options
from pairgen.console import Number, finish, json_option, say

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("sources", nargs=-1, metavar="[RUN|DIALOGUES]...")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the training [data/MODEL-sft].")
@click.option("--list", "show", is_flag=True, help="Describe the recipes, and do nothing else.")
@click.option("--from", "pairs", default="", metavar="PAIRS", help="The chosen sides of these pairs alone, instead.")
@training_options
@click.option("--games", multiple=True, help="These games alone; repeatable, or separated by commas [all].")
@click.option("--per-player", type=click.IntRange(0), default=0, help="Moves a player and episode [all].")
@click.option("--moves-per-game", type=click.IntRange(0), default=0, help="Moves a game [all].")
@click.option("--test-size", type=Number(0, 1, max_open=True), default=0.1, show_default=True, help="Share to test.")
@click.option("--clembench", type=FOLDER, default=None, help="The checkout with the games of evaluation instances.")
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
@click.option("--no-eval-split", is_flag=True, help="Keep nothing out: the model is never to be judged on it.")
@click.option("--resume", is_flag=True, help="Go on with the training in --out, from its newest checkpoint.")
@click.option("--overwrite", is_flag=True, help="Replace the training in --out.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, sources: tuple[str, ...], out: Path | None, show: bool, clembench: Path | None,
    eval_keys: tuple[Path, ...], eval_results: tuple[Path, ...], resume: bool, overwrite: bool, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Fine-tune a model on won moves, by TRL: a LoRA adapter, or all weights with --full.

    RUN is the folder of a run; DIALOGUES a file, or a data set on the Hub, in the shape of playpen's interactions
    (colab-potsdam/playpen-data). Every move of a won episode is a row with the prompt that it answered, and only
    its own words are learned.
    """
    from click.core import ParameterSource

    from pipelines import recipes

    if show:
        listed = {n: {"source": r.source, **r.values} for n, r in recipes.RECIPES.items() if r.command == "sft"}
        finish({"recipes": listed}, recipes.described("sft"), as_json=as_json)
        return
    if resume and overwrite:
        raise click.UsageError("--resume keeps what is there and --overwrite removes it: give one of them.")
    from pipelines import sft, sft_sources, train_session
    from pipelines.train_config import SftConfig

    options["games"] = tuple(name.strip() for entry in options["games"] for name in entry.split(",") if name.strip())
    selecting = ("games", "per_player", "moves_per_game", "eval_split", "no_eval_split")
    named = {"eval_keys": eval_keys, "eval_results": eval_results, **{name: options[name] for name in selecting}}
    if not resume:
        sft_sources.check_sources(sources, options["pairs"], named)
    config = SftConfig(
        eval_keys=tuple(p.name for p in eval_keys),
        eval_results=tuple(p.resolve().name for p in eval_results),
        **options,
    )
    given = {
        name for name in (*options, "eval_keys", "eval_results")
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }  # fmt: skip
    folder = out or Path("data") / f"{Path(config.model).name or 'model'}-sft"
    try:
        manifest = sft.train_sft(
            sources, folder, config, clembench=clembench, eval_keys=eval_keys, eval_results=eval_results, given=given,
            resume=resume, overwrite=overwrite,
        )  # fmt: skip
    except KeyboardInterrupt:
        again = " ".join(shlex.quote(source) for source in sources)
        say(f"\nstopped: go on with pairgen sft {again} --out {shlex.quote(str(folder))} --resume")
        ctx.exit(130)
    if train_session.is_first():
        finish(train_session.summary(folder, manifest), sft.lines(folder, manifest), as_json=as_json)
