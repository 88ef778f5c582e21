"""Numbers on the command line are finite."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from pairgen.cli import main
from pairgen.console import Number


@pytest.mark.parametrize(
    "arguments",
    [
        ("corrupt", "RUN", "--near"),
        ("corrupt", "RUN", "--test-size"),
        ("corrupt", "RUN", "--max-shortcut"),
        ("rollout", "--timeout"),
        ("rollout", "--temperature"),
    ],
)
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_that_is_not_finite_is_wrong_usage(arguments, value):
    result = CliRunner().invoke(main, [*arguments, value])
    assert result.exit_code == 2 and "Traceback" not in result.output


def test_what_is_in_the_range_is_taken():
    assert Number(0, 1).convert("0.5", None, None) == 0.5
    with pytest.raises(click.BadParameter):
        Number(0, 1).convert("nan", None, None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("corrupt", ".", "--no-eval-split", "--no-verify", "--require-verified"), "leave out --no-verify"),
        (("rollout", "--out", "nowhere", "--resume"), "holds no run to go on with"),
    ],
)
def test_what_contradicts_itself_is_wrong_usage(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2 and says in result.output + str(result.exception)
