"""Replies find the calls that they came from."""

from results_folder import TABOO_PROMPTS, TABOO_REPLIES, api_call, chat, local_call, taboo, taboo_calls

from pairgen.clem.calls import call_of
from pairgen.clem.matching import match
from pairgen.clem.transcript import replies


def test_calls_with_the_replies_time_stamp_are_theirs_in_any_order():
    found = replies(taboo(), ["Player 1", "Player 2"])
    stamped = [r._replace(timestamp=f"t{i}") for i, r in enumerate(found)]
    calls = [call_of({**c, "timestamp": f"t{i}"}) for i, c in enumerate(taboo_calls())]
    matches = match(stamped, {"": calls[::-1]})
    assert [m.call.reply for m in matches] == TABOO_REPLIES
    assert [m.same_prompt for m in matches] == [True] * 4


def test_a_players_own_calls_are_matched_in_order_and_calls_of_no_reply_are_passed_over():
    found = replies(taboo(), ["Player 1", "Player 2"])
    unheard = api_call(chat("aside?"), "CLUE: the first")
    own = [api_call(TABOO_PROMPTS[0], TABOO_REPLIES[0]), unheard, api_call(TABOO_PROMPTS[2], TABOO_REPLIES[2])]
    matches = match(found, {"Player 1": [call_of({"round": 0, "call": c}) for c in own]})
    assert [m.same_prompt for m in matches] == [True, None, True, None]


def test_a_call_that_sent_something_else_is_found_and_told_apart():
    found = replies(taboo(), ["Player 1", "Player 2"])
    matches = match(found, {"": [call_of(local_call(chat("Describe feb."), TABOO_REPLIES[0]))]})
    assert [m.same_prompt for m in matches] == [False, None, None, None]
