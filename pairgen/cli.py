"""The command line: one group, one small module a command in `pairgen.commands`. Loads nothing heavy."""

from __future__ import annotations

import importlib
import sys

import click

from pairgen import __version__
from pairgen.errors import PairgenError, UsageProblem, did_you_mean

COMMANDS = (
    "doctor", "demo", "rollout", "import", "corrupt", "mix", "show", "report", "push", "sft", "dpo", "merge",
)  # fmt: skip


class Commands(click.Group):
    """Imports a command's module when it is asked for; turns pairgen's errors into one sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"pairgen.commands.{name}_")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"There is no command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PairgenError as error:
            click.echo(f"pairgen: {error}", err=True)
            ctx.exit(2 if isinstance(error, UsageProblem) else 1)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(
                f"pairgen: {error.filename}: {error.strerror}; make it accessible, or name another place.", err=True
            )
            ctx.exit(1)


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PAIRGEN", "max_content_width": 100},
)
@click.version_option(__version__, prog_name="pairgen")
def main() -> None:
    """Preference pairs from a language model's own play of the clembench dialogue games.

    From a model to a data set for DPO: rollout, corrupt, push. `pairgen demo` does the first two with a small model.
    """


if __name__ == "__main__":
    sys.exit(main())
