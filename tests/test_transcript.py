"""Prompts rebuilt from events are what the backend made of the player's memory."""

from results_folder import ask, note, say, taboo

from pairgen.clem.transcript import merged, replies
from pairgen.records import Message


def prompts(events, models=("Player 1", "Player 2")):
    return [[(m.role, m.content) for m in r.prompt] for r in replies(events, models)]


def test_initial_prompt_and_context_are_one_message():
    assert prompts(taboo())[1] == [("user", "You guess.\n\n\nCLUE: a month")]


def test_each_player_remembers_its_own_side_only():
    assert prompts(taboo())[3] == [
        ("user", "You guess.\n\n\nCLUE: a month"),
        ("assistant", "GUESS: may"),
        ("user", "CLUE: the first"),
    ]


def test_what_is_to_be_forgotten_is_in_its_own_prompt_and_in_no_other():
    events = [
        ask("Player 1", "rules"),
        say("Player 1", "fine"),
        ask("Player 1", "aside?", "forget"),
        say("Player 1", "yes", "forget"),
        ask("Player 1", "go on"),
        say("Player 1", "done"),
    ]
    assert prompts(events)[1] == [("user", "rules"), ("assistant", "fine"), ("user", "aside?")]
    assert prompts(events)[2] == [("user", "rules"), ("assistant", "fine"), ("user", "go on")]


def test_a_forgotten_question_joins_the_message_before_it_for_this_once():
    events = [ask("Player 1", "rules"), ask("Player 1", "aside?", "forget"), say("Player 1", "yes", "forget")]
    assert prompts(events)[0] == [("user", "rules\n\naside?")]


def test_a_pseudo_reply_is_remembered_but_was_not_said():
    events = [
        ask("Player 1", "rules", "pseudo"),
        say("Player 1", "Ok.", "pseudo"),
        ask("Player 1", "question"),
        say("Player 1", "answer"),
    ]
    first, second = replies(events, ["Player 1"])
    assert (first.said, second.said) == (False, True)
    assert prompts(events)[1] == [("user", "rules"), ("assistant", "Ok."), ("user", "question")]


def test_scripted_players_have_no_replies_and_their_notes_belong_to_the_move_before():
    events = [
        ask("Player 1", "where?"),
        say("Player 1", "GO: up"),
        ask("Player 2", "GO: up"),
        say("Player 2", "Game needs to be aborted"),
        note("aborted", "abort game"),
    ]
    (reply,) = replies(events, ["Player 1"])
    assert [e["action"]["type"] for e in reply.notes] == ["aborted"]


def test_notes_before_the_first_reply_belong_to_none():
    events = [note("board status", {}), ask("Player 1", "a"), say("Player 1", "b"), note("clue", "c")]
    assert [[e["action"]["type"] for e in r.notes] for r in replies(events, ["Player 1"])] == [["clue"]]


def test_an_empty_system_message_is_left_out_as_the_backends_do():
    messages = [Message("system", ""), Message("user", "a"), Message("user", "b"), Message("assistant", "c")]
    assert merged(messages) == (Message("user", "a\n\nb"), Message("assistant", "c"))
    assert merged([Message("system", "s"), Message("user", "a")])[0].role == "system"
