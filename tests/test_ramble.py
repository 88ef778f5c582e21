"""ramble: what the model is asked to say on, and what of it becomes the rejected side."""

import dataclasses
import random

import pytest
from factories import make_move

from corruptions import ramble
from pairgen.errors import UsageProblem
from pairgen.records import Message
from pairgen.strategy import Corruption, Decline, Draft, Material


def material(reply="CLUE: red", *, draft=None, **fields):
    drafts = () if draft is None else (draft,)
    return Material(make_move(0, reply=reply, **fields), "g", (), drafts=drafts)


def asked(stuff, seed=1, **options):
    (ask,) = ramble.asks(stuff, random.Random(seed), options)
    return ask


def said(text, reply="CLUE: red", *, finish="stop", problem="", options=(), **fields):
    draft = Draft(text, finish, 1, 1, "m", problem)
    return ramble.corrupt(material(reply, draft=draft, **fields), random.Random(1), dict(options))


def test_the_model_goes_on_from_its_own_reply():
    stuff = material(completion_tokens=20, token_ids=())
    ask = asked(stuff)
    assert ask.messages == (*stuff.move.prompt, Message("assistant", "CLUE: red")) and ask.go_on
    assert ramble.SHORTEST <= ask.min_tokens <= 40 and ask.max_tokens == ask.min_tokens + ramble.ROOM
    assert ask.temperature is None and ask.seed is not None


def test_it_goes_on_from_what_it_said_before_thinking_was_taken_out():
    stuff = material("CLUE: red", raw_reply="<think>hm</think> CLUE: red\n")
    assert asked(stuff).messages[-1].content == "<think>hm</think> CLUE: red\n"
    other = Material(dataclasses.replace(stuff.move, raw_reply="something else"), "g", ())
    assert asked(other).messages[-1].content == "CLUE: red"


def test_a_fresh_ramble_answers_the_prompt_and_must_be_longer_than_the_chosen_reply():
    stuff = material(completion_tokens=20)
    ask = asked(stuff, manner="fresh")
    assert ask.messages == stuff.move.prompt and not ask.go_on
    assert ask.min_tokens > 20


def test_lengths_differ_from_move_to_move_and_can_be_set():
    stuff = material(completion_tokens=40)
    assert len({asked(stuff, seed).min_tokens for seed in range(20)}) > 10
    assert len({asked(stuff, seed).seed for seed in range(20)}) == 20
    assert asked(stuff, min_tokens="7", max_tokens="9") == dataclasses.replace(asked(stuff), min_tokens=7, max_tokens=9)
    assert asked(material(completion_tokens=9_000)).min_tokens <= ramble.LONGEST
    assert asked(material("word " * 80, completion_tokens=-1)).min_tokens > ramble.SHORTEST


@pytest.mark.parametrize(
    "options", [{"min_tokens": "0"}, {"min_tokens": "9", "max_tokens": "9"}, {"manner": "freshly"}, {"max_tokens": "x"}]
)
def test_an_option_that_cannot_work_is_wrong_usage(options):
    with pytest.raises(UsageProblem):
        asked(material(), **options)


def test_the_rejected_side_is_the_chosen_reply_and_what_came_after_it():
    assert said(" and blue.\n") == Corruption("CLUE: red and blue.", "continue")
    assert said(" and bl", finish="length") == Corruption("CLUE: red and bl", "continue/cut")
    assert said("\nMore", raw_reply="<think>hm</think>CLUE: red ").text == "CLUE: red \nMore"
    fresh = said("<think>so</think> CLUE: green, as I said.", options={"manner": "fresh"}.items())
    assert fresh == Corruption("CLUE: green, as I said.", "fresh")


def test_where_the_model_tried_to_leave_its_turn_it_is_cut():
    made = said(" and blue.<|im_end|>\n<|im_start|>user\nno", finish="length")
    assert made == Corruption("CLUE: red and blue.", "continue")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (said(" \n"), "the model said nothing"),
        (said("<|im_end|>more"), "the model said nothing"),
        (said("", problem="context_exceeded"), "the model gave no reply context_exceeded"),
        (said("</think>and", raw_reply="<think>CLUE: red"), "the chosen reply was lost"),
        (said("CLUE: re", options={"manner": "fresh"}.items()), "not longer than the chosen reply"),
        (said("<think>and so on, at length", options={"manner": "fresh"}.items()), "the model said nothing"),
        (ramble.corrupt(material(), random.Random(1), {}), "nobody was asked"),
        (ramble.asks(material(" "), random.Random(1), {}), "empty move"),
    ],
)
def test_what_is_no_ramble_is_declined(made, reason):
    assert made == Decline(reason)
