"""corrected: what the judge is shown, and what of its answer becomes the chosen side."""

import random

import pytest
from factories import make_move

from corruptions import corrected
from pairgen.records import Message
from pairgen.strategy import Corruption, Decline, Draft, Material

PROMPT = (Message("system", "Play $fair."), Message("user", "Name a city."), Message("assistant", "STOP: Rome"),
          Message("user", "The next one."))  # fmt: skip


def illegal(*, draft=None, peers=(), reply="I go to Paris!", violation="the reply does not start with 'STOP: '"):
    move = make_move(2, reply=reply, violation=violation)
    drafts = () if draft is None else (draft,)
    return Material(move, "g", peers, drafts=drafts)


def said(text, *, finish="stop", problem="", **fields):
    draft = Draft(text, finish, 1, 1, "wise-1", problem)
    return corrected.corrupt(illegal(draft=draft, **fields), random.Random(1), {})


def test_the_judge_sees_the_conversation_the_move_and_the_reason_and_nothing_else():
    import dataclasses

    stuff = illegal(peers=("STOP: Oslo",))
    stuff = dataclasses.replace(stuff, move=dataclasses.replace(stuff.move, prompt=PROMPT))
    (ask,) = corrected.asks(stuff, random.Random(1), {"max_tokens": "50"})
    (message,) = ask.messages
    assert all(m.content in message.content for m in PROMPT)
    assert "I go to Paris!" in message.content and stuff.move.violation in message.content
    assert "Oslo" not in message.content and "$" not in message.content.replace("$fair", "")
    assert (ask.temperature, ask.max_tokens, ask.min_tokens, ask.go_on) == (0.0, 50, 0, False)
    assert ask == corrected.asks(stuff, random.Random(2), {"max_tokens": "50"})[0]


@pytest.mark.parametrize(
    "text",
    [
        "STOP: Paris",
        "  STOP: Paris\n",
        "<think>It must start with STOP.</think>\n\nSTOP: Paris",
        "```\nSTOP: Paris\n```",
        "```text\nSTOP: Paris```",
        "`STOP: Paris`",
        '"STOP: Paris"',
        "“STOP: Paris”",
        "The corrected move is: STOP: Paris",
        "Corrected move:\n\n```\nSTOP: Paris\n```",
    ],
)
def test_what_is_around_the_move_is_taken_off(text):
    assert said(text) == Corruption("STOP: Paris", "judge/wise-1")


def test_what_belongs_to_the_moves_of_a_game_stays():
    assert said("```\na b\n```", peers=("```\nx y\n```",)).text == "```\na b\n```"
    assert said('"go" and "stop"').text == '"go" and "stop"'
    assert said('"yes"', peers=('"no"',)).text == '"yes"'


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (said(" "), "the judge said nothing"),
        (said("<think>hm, let me see"), "the judge said nothing"),
        (said("I go  to Paris!"), "the judge repeated the move"),
        (said('"I go to Paris!"'), "the judge repeated the move"),
        (said("I'm sorry, but I can't help with that."), "the judge refused"),
        (said("I cannot play this game."), "the judge refused"),
        (said("STOP: Par", finish="length"), "the judge was cut off"),
        (said("", problem="timeout"), "the judge gave no reply timeout"),
        (said("STOP: Paris<|im_end|>"), "special token in the result"),
        (corrected.corrupt(illegal(), random.Random(1), {}), "nobody was asked"),
        (corrected.asks(illegal(violation=""), random.Random(1), {}), "no reason of the game master"),
    ],
)
def test_what_is_no_correction_is_declined(made, reason):
    assert made == Decline(reason)
