"""The game master's notes tell a move that it refused from one that was merely wrong."""

from enum import Enum

import pytest
from results_folder import note, say

from pairgen.clem.events import violation_in


class TurnLogs(str, Enum):
    VALIDATION_ERROR = "validation error"
    TURN_END_AFTER = "turn end after"


REFUSED = {
    "adventuregame": ([("metadata", "Round: 0"), ("invalid_format", "command_tag_missing")], "command_tag_missing"),
    "codenames": (
        [(TurnLogs.VALIDATION_ERROR, {"player": "Guesser", "type": "x", "message": "Too many guesses"})],
        "validation error: Too many guesses",
    ),
    "codenames, saved by name": ([("Turn_logs.VALIDATION_ERROR", {"message": "Too many"})], "Too many"),
    "guesswhat": ([("invalid content", "No syllables."), ("invalid content", "abort game")], "No syllables."),
    "imagegame": ([("invalid format", "Invalid grid format")], "invalid format: Invalid grid format"),
    "matchit": ([("invalid content", "abort, empty message"), ("Game over", "Aborted")], "abort, empty message"),
    "mm_mapworld": ([("Invalid format", "Game aborted."), ("aborted", True)], "Invalid format"),
    "mm_mapworld, asked again": ([("reprompting", "invalid format")], "reprompting"),
    "mm_mapworld, no JSON": ([("JSON decode error", "Game aborted.")], "JSON decode error"),
    "privateshared": ([("parse", "NA"), ("metadata", "Answer for FROM invalid")], "parse: NA"),
    "static": ([("metadata", "ParseError: no letter"), ("invalid format", "game_result = ABORT")], "no letter"),
    "taboo": ([("invalid format", "abort game")], "invalid format: abort game"),
    "taboo, clue": ([("valid response", "continue"), ("invalid clue", "Related word 'x'")], "Related word"),
    "textmapworld": ([("parse", "hm"), ("aborted", "abort game")], "aborted: abort game"),
    "textmapworld, graph": ([("non_processable", "not processable"), ("aborted", "abort game")], "not processable"),
    "wordle": ([("metadata", "Error: no valid word"), ("invalid format", "game_result = ABORT")], "no valid word"),
    "wordle, critic": ([("metadata", "no agreement"), ("invalid format", "game_result = ABORT")], "no agreement"),
    "an unknown game": ([("rule_violation", {"why": "moved twice"})], "moved twice"),
}
ACCEPTED = {
    "adventuregame": [("action_fail", {"fail_type": "entity_not_accessible"}), ("turn_limit_reached", "Turn limit 50")],
    "cloudgame": [("judgement", False), ("aborted", False)],
    "codenames": [(TurnLogs.TURN_END_AFTER, "match"), ("game end", "opponent has won")],
    "guesswhat": [("incorrect guess", "mustang"), ("max turns reached", "8")],
    "imagegame": [("found grid", "X"), ("game end", "turn limit reached")],
    "matchit": [("valid format", "continue"), ("Decision Player A", "loss")],
    "mm_mapworld": [("aborted", True), ("turn limit reached", True)],
    "privateshared": [("parse", "yes"), ("metadata", "Answer for TO valid after 1 tries."), ("check", "incorrect")],
    "referencegame": [("parse", "Expression: NA"), ("parse_wrong", "first")],
    "static": [("wrong answer", "game_result = LOSE")],
    "taboo": [("valid response", "continue"), ("valid guess", "may"), ("max rounds reached", "3")],
    "textmapworld": [("Valid format", "Continue"), ("move", "{}"), ("loop_detected", "x"), ("turns_limit", "20")],
    "wordle": [("metadata", "attempts = 1\nguess = house"), ("max rounds played", "game_result = LOSS")],
    "nothing": [],
}


@pytest.mark.parametrize(("notes", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refused_move_has_the_game_masters_words(notes, reason):
    assert reason in violation_in([note(*n) for n in notes])


@pytest.mark.parametrize("notes", ACCEPTED.values(), ids=ACCEPTED)
def test_an_accepted_move_has_none_however_bad_it_was(notes):
    assert violation_in([note(*n) for n in notes]) == ""


def test_only_the_game_masters_notes_to_itself_count():
    assert violation_in([say("Player 1", "invalid format"), {**note("invalid format", "x"), "to": "Player 1"}]) == ""
