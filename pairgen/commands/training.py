"""The options that `pairgen dpo` and `pairgen sft` share. Knows no trainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pairgen.console import Number

F = TypeVar("F", bound=Callable[..., Any])
DTYPES = ("auto", "bfloat16", "float32")
RECIPE = "[the recipe's, or see --list]"


def listed(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names between commas; `none` is no name at all."""
    if value is None:
        return None
    return tuple(name.strip() for name in value.split(",") if name.strip() not in ("", "none"))


OPTIONS = (
    click.option("--model", default="", help="Checkpoint folder or Hub id to train."),
    click.option("--revision", default=None, help="Revision of a Hub model."),
    click.option("--recipe", default="", metavar="NAME", help="Published hyperparameters, see --list."),
    click.option("--learning-rate", type=Number(0, min_open=True), default=None, help=RECIPE),
    click.option("--scheduler", default=None, metavar="NAME", help="How the rate falls, such as linear or cosine."),
    click.option("--warmup-ratio", type=Number(0, 1), default=None, help="Share of steps in which the rate rises."),
    click.option(
        "--batch-size", type=click.IntRange(1), default=None, help="Rows a step, over all devices together."
    ),
    click.option("--epochs", type=Number(0, min_open=True), default=None, help="How often each row is seen."),
    click.option(
        "--max-length", type=click.IntRange(1), default=None,
        help="Tokens a row; a longer row is refused, or dropped with --drop-unfit [the recipe's, or the longest row].",
    ),
    click.option("--seed", type=int, default=None),
    click.option("--lora-r", type=click.IntRange(1), default=None, help="Rank of the adapter."),
    click.option("--lora-alpha", type=click.IntRange(1), default=None, help="Its scale."),
    click.option("--lora-dropout", type=Number(0, 1), default=None, help="Its dropout, which DPO turns off."),
    click.option("--lora-targets", default=None, metavar="NAMES", help="all-linear, or module names between commas."),
    click.option(
        "--lora-save", default=None, metavar="NAMES", callback=listed,
        help="Modules trained whole beside it, such as lm_head,embed_tokens, or none.",
    ),
    click.option(
        "--full", is_flag=True, help="Train all weights instead of an adapter [at TRL's rate, or --learning-rate]."
    ),
    click.option("--max-steps", type=click.IntRange(0), default=0, help="Stop after so many steps [all epochs]."),
    click.option("--per-device-batch", type=click.IntRange(0), default=0, help="Rows a device holds [what fits]."),
    click.option(
        "--gradient-checkpointing/--no-gradient-checkpointing", default=True, show_default=True,
        help="Compute activations twice instead of keeping them.",
    ),
    click.option(
        "--dtype", type=click.Choice(DTYPES), default="auto", show_default=True,
        help="Weights in memory; auto: bfloat16 on a GPU, float32 on the CPU and with --full.",
    ),
    click.option("--save-steps", type=click.IntRange(0), default=0, help="Steps between saves [a tenth of all]."),
    click.option(
        "--chat-template-kwargs", multiple=True, metavar="KEY=VALUE|JSON",
        help="Such as enable_thinking=false; repeatable [what the run used, where the set says].",
    ),
    click.option("--drop-unfit", is_flag=True, help="Leave out, and count, rows that TRL would cut, drop or misread."),
    click.option(
        "--allow-broken-prefix", is_flag=True, help="Train also where a prompt reads otherwise once a reply follows."
    ),
    click.option("--merge", is_flag=True, help="Merge the adapter into a checkpoint in OUT/merged, and try a turn."),
)  # fmt: skip


def training_options(function: F) -> F:
    """All of them, in this order."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function
