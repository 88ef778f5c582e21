"""Faults are counted by game and cause, and a known one comes with its fix."""

import pytest

from pairgen.records import Fault
from pipelines.faults import fix_for, grouped_faults


@pytest.mark.parametrize(
    ("kind", "message", "fix"),
    [
        ("game_load", "LookupError: use\n>>> nltk.download('stopwords')", "python -m nltk.downloader stopwords"),
        ("game_load", "ModuleNotFoundError: No module named 'clingo'", 'pip install "pairgen[clembench]"'),
        ("game_setup", "KeyError: '-1'", "update the clembench checkout"),
        ("context_exceeded", "9000 tokens", "--max-model-len"),
        ("timeout", "", "--timeout"),
    ],
)
def test_a_known_fault_comes_with_its_fix(kind, message, fix):
    assert fix in fix_for(kind, message)


def test_faults_are_grouped_by_game_and_cause():
    faults = [("a", Fault("timeout", "slow", n)) for n in range(3)] + [("b", Fault("game_load", "x\n*** y\n", 0))]
    grouped = grouped_faults(faults)
    assert [(g["game"], g["episodes"]) for g in grouped] == [("a", 3), ("b", 1)]
