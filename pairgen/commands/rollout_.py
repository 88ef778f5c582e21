"""`pairgen rollout`: parse, play, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.console import Number, finish, json_option, say

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)
FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True)
ENGINES = ("auto", "vllm", "openai", "transformers", "scripted")


@click.command()
@click.option("--model", default="", help="Checkpoint folder or Hub id; with --base-url the name the server knows.")
@click.option(
    "--partner", default="", metavar="MODEL[@URL]", help="A frozen model for all model players but one [none: --model]."
)
@click.option(
    "--learner", type=click.Choice(["first", "second", "alternate"]), default="alternate", show_default=True,
    help="With --partner: the model player that --model speaks for, or each in turn over instances and samples.",
)  # fmt: skip
@click.option("--lora", default=None, metavar="ADAPTER", help="A LoRA adapter for --model: its folder, or a Hub id.")
@click.option("--out", "out", type=click.Path(path_type=Path), default=None, help="Run folder [data/MODEL-rollout].")
@click.option("--clembench", type=click.Path(), default=None, help="A clembench checkout [CLEMBENCH_HOME].")
@click.option("--games", multiple=True, help="Game, benchmark version or `all`; repeatable, or separated by commas.")
@click.option(
    "--limit", type=click.IntRange(0), default=0, help="Instances a game, from its experiments in turn [all]."
)
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="Episodes an instance.")
@click.option("--concurrency", type=click.IntRange(1), default=64, show_default=True, help="Episodes open at once.")
@click.option("--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="What serves the model.")
@click.option("--base-url", multiple=True, help="An OpenAI-compatible server, such as http://host:8000/v1; repeatable.")
@click.option("--temperature", type=Number(0), default=0.0, show_default=True)
@click.option("--top-p", type=Number(0, 1, min_open=True), default=1.0, show_default=True)
@click.option("--max-tokens", type=click.IntRange(1), default=300, show_default=True, help="New tokens a reply.")
@click.option("--stop", multiple=True, help="A string that ends a reply; repeatable.")
@click.option(
    "--exclude-eval/--no-exclude-eval", default=None,
    help="Leave out evaluation instances [where the split can be read; corrupt takes them out anyway].",
)  # fmt: skip
@click.option("--only-eval", is_flag=True, help="Play evaluation instances alone, for a clemscore.")
@click.option("--eval-keys", type=FILE, multiple=True, help="They are in this .jsonl, .csv or .parquet file.")
@click.option(
    "--eval-split", default="", metavar="REPO[:CONFIG[:SPLIT]][@REV]", help="They are in this split on the Hub."
)
@click.option("--eval-results", type=FOLDER, multiple=True, help="They are those of these clembench results.")
@click.option("--seed", type=int, default=42, show_default=True)
@click.option("--revision", default=None, help="Revision of a Hub model.")
@click.option("--max-model-len", type=click.IntRange(1), default=None, help="Context in tokens [the model's own].")
@click.option("--dtype", default="auto", show_default=True, help="Weights in memory: auto, bfloat16, float16, float32.")
@click.option("--timeout", type=Number(0, min_open=True), default=600.0, show_default=True, help="Seconds a reply.")
@click.option(
    "--restarts", type=click.IntRange(0), default=3, show_default=True, help="How often a dead engine is revived."
)
@click.option("--engine-arg", multiple=True, metavar="KEY=VALUE", help="Any argument of vLLM's engine; repeatable.")
@click.option(
    "--chat-template-kwargs", multiple=True, metavar="KEY=VALUE|JSON",
    help="Such as enable_thinking=false, or a JSON object; repeatable.",
)  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the run in --out: play only what is missing or failed.")
@click.option("--overwrite", is_flag=True, help="Replace the run in --out.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, out: Path | None, resume: bool, overwrite: bool, as_json: bool, **options: Any
) -> None:
    """Let a model play clembench games and keep every move.

    One model speaks for all players that the games do not script themselves; --partner gives all of them but one to
    another model, whose moves never become data. Every episode is saved when it ends: after a crash, the same command
    with --resume plays only what is missing.
    """
    from click.core import ParameterSource

    from pairgen.store import CONFIG
    from pipelines import session
    from pipelines.plan import label_of
    from pipelines.rollout_config import RolloutConfig

    options["games"] = tuple(name.strip() for entry in options["games"] for name in _split(entry))
    if options["clembench"]:
        options["clembench"] = str(Path(options["clembench"]).resolve())
    config = RolloutConfig(**options)
    given = {name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if resume and overwrite:
        raise click.UsageError("--resume keeps what is there and --overwrite removes it: give one of them.")
    folder = out or Path("data") / f"{label_of(config.model)}-rollout"
    try:
        manifest = session.roll_out(folder, config, given=given, resume=resume, overwrite=overwrite)
    except KeyboardInterrupt:
        safe = f"finished episodes are safe in {folder}; go on with --out {shlex.quote(str(folder))} --resume"
        say(f"\nstopped: {safe if (folder / CONFIG).exists() else 'no episode was finished'}.")
        ctx.exit(130)
    summary = session.summary(folder, manifest)
    finish(summary, session.lines(folder, manifest), as_json=as_json)
    if not summary["played"]:
        say("pairgen: no episode could be played to its end: see the faults above.")
        ctx.exit(1)


def _split(entry: str) -> list[str]:
    """Commas separate names, except within a JSON selector."""
    return [entry] if entry.lstrip().startswith("{") else [name for name in entry.split(",") if name.strip()]
