"""`pairgen doctor`: parse, look, print."""

from __future__ import annotations

from pathlib import Path

import click

from pairgen.console import finish, json_option, table


@click.command()
@click.option("--clembench", type=click.Path(), default=None, help="A clembench checkout [CLEMBENCH_HOME].")
@click.option("--games", multiple=True, help="Games that have to work; repeatable [those of benchmark 2.0].")
@click.option("--model", default="", help="Try this model: one token from it.")
@click.option("--engine", type=click.Choice(["auto", "vllm", "openai", "transformers"]), default="auto")
@click.option("--base-url", multiple=True, help="Try this server.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, clembench: str | None, games: tuple[str, ...], model: str, engine: str,
    base_url: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Say what is ready on this machine and what is not, with the command that mends it.

    Exit code 1 when something that was asked for (a game named with --games, the model, a server) cannot run.
    """
    from pairgen.engines import EngineOptions
    from pipelines import doctor

    where = str(Path(clembench).resolve()) if clembench else None
    options = EngineOptions(name=engine, model=model, base_urls=base_url, concurrency=1)
    checks = doctor.examine(where, list(games), options)
    missing = [check for check in checks if check.state == doctor.MISSING]
    lines = table([(c.state, c.what, c.seen, c.fix) for c in checks], ("", "what", "seen", "what mends it"))
    finish({"ready": not missing, "checks": [check._asdict() for check in checks]}, lines, as_json=as_json)
    playable = any(check.what.startswith("game ") and check.state == doctor.READY for check in checks)
    engine_fails = any(check.what == "engine" for check in missing)
    asked = bool(games or clembench)
    if engine_fails or (asked and not playable) or (games and missing):
        ctx.exit(1)
