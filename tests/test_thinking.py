"""The game is shown what a model says, not what it thinks."""

import pytest

from pairgen.thinking import shown


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (" CLUE: red\n", "CLUE: red"),
        ("<think>hm</think>\n\nCLUE: red", "CLUE: red"),
        ("hm, red?</think>CLUE: red", "CLUE: red"),
        ("<think>a</think>b</think>CLUE: red", "CLUE: red"),
        ("<think>never closed", ""),
        ("CLUE: I <think> so", "CLUE: I <think> so"),
        ("", ""),
    ],
)
def test_thinking_text_is_taken_out(raw, expected):
    assert shown(raw) == expected
