"""The command line as a whole: light to start, exact about what is wrong."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from pairgen.cli import COMMANDS, main

HEAVY = ["torch", "vllm", "transformers", "datasets", "clemcore", "polars", "pyarrow", "numpy", "openai"]


@pytest.mark.parametrize("arguments", [["--help"], *[[name, "--help"] for name in COMMANDS]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys\nfrom pairgen.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Usage:" in done.stdout


def test_every_command_is_listed_with_what_it_does():
    text = CliRunner().invoke(main, ["--help"]).output
    for name in COMMANDS:
        line = next(row for row in text.splitlines() if row.split()[:1] == [name])
        assert len(line.split()) > 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_print_json(name):
    assert "--json" in CliRunner().invoke(main, [name, "--help"]).output


def test_a_mistyped_command_is_answered_with_the_right_one():
    result = CliRunner().invoke(main, ["rolout"])
    assert result.exit_code == 2
    assert "did you mean rollout?" in result.output


def test_an_option_can_come_from_the_environment(tmp_path):
    result = CliRunner().invoke(main, ["rollout", "--games", "x"], env={"PAIRGEN_ROLLOUT_SAMPLES": "none"})
    assert result.exit_code == 2
    assert "'none' is not a valid integer" in result.output


def test_the_commands_that_the_demo_proposes_can_be_pasted():
    import shlex
    from pathlib import Path

    from pairgen.commands.demo_ import _next

    out = Path("it's my demo")
    words = [
        shlex.split(line) for line in _next(out / "run", out / "pairs", {"pairs": 1, "episodes": 2, "seconds": 3})[2:]
    ]
    code = words[0][words[0].index("-c") + 1]
    compile(code, "demo", "exec")
    assert repr(str(out / "pairs")) in code
    assert words[1][2:5] == ["pairgen", "corrupt", str(out / "run")]
    assert words[1][-1] == f"{out / 'pairs'}-looping"
    assert words[2][3:] == ["pairgen", "push", str(out / "pairs"), "USER/NAME", "--dry-run"]
