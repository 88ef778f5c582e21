"""`pairgen dpo`: parse, train, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.commands.training import RECIPE, training_options
from pairgen.console import Number, finish, json_option, say


@click.command()
@click.argument("pairs", required=False, default=None, metavar="PAIRS")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the training [data/MODEL-dpo].")
@click.option("--list", "show", is_flag=True, help="Describe the recipes, and do nothing else.")
@training_options
@click.option("--beta", type=Number(0, min_open=True), default=None, help=f"How close to stay to the model {RECIPE}.")
@click.option("--loss-type", default=None, metavar="NAME", help="TRL's name of the loss, such as sigmoid or ipo.")
@click.option("--resume", is_flag=True, help="Go on with the training in --out, from its newest checkpoint.")
@click.option("--overwrite", is_flag=True, help="Replace the training in --out.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, pairs: str | None, out: Path | None, show: bool, resume: bool, overwrite: bool,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Train a model on preference pairs with DPO, by TRL: a LoRA adapter, or all weights with --full.

    PAIRS is the folder of a pair set, a file of pairs (.json, .jsonl, .parquet) or the name of a data set on the Hub.
    What TRL would do silently to a row stops the command before a model is loaded. On several GPUs: accelerate launch
    -m pairgen.cli dpo, with the same words.
    """
    from click.core import ParameterSource

    from pipelines import recipes

    if show:
        listed = {n: {"source": r.source, **r.values} for n, r in recipes.RECIPES.items() if r.command == "dpo"}
        finish({"recipes": listed}, recipes.described("dpo"), as_json=as_json)
        return
    if pairs is None:
        raise click.UsageError("Give the folder of a pair set, a pair file, or a data set on the Hub.")
    if resume and overwrite:
        raise click.UsageError("--resume keeps what is there and --overwrite removes it: give one of them.")
    from pipelines import dpo, train_session
    from pipelines.train_config import DpoConfig

    config = DpoConfig(**options)
    given = {name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    folder = out or Path("data") / f"{Path(config.model).name or 'model'}-dpo"
    try:
        manifest = dpo.train_dpo(pairs, folder, config, given=given, resume=resume, overwrite=overwrite)
    except KeyboardInterrupt:
        say(f"\nstopped: go on with pairgen dpo {shlex.quote(pairs)} --out {shlex.quote(str(folder))} --resume")
        ctx.exit(130)
    if train_session.is_first():
        finish(train_session.summary(folder, manifest), dpo.lines(folder, manifest), as_json=as_json)
