"""Outcomes, scores and moves are kept a model at a time, as `clem eval` scores them."""

from factories import PLAYERS, make_episode

from pairgen.records import Player, from_dict, to_dict
from pipelines.played import ModelPlayed, learner_of, played_of
from pipelines.scoring import result_of, score

OTHER = (Player("Player 1", "Giver", "large"), Player("Player 2", "Guesser", "programmatic"))


def test_each_model_has_scores_of_its_own():
    mine = [make_episode(1, moves=2), make_episode(2, outcome="aborted", main_score=None, moves=6)]
    other = make_episode(3, players=OTHER, game="wordle", main_score=40.0, outcome="lose")
    large, tiny = played_of([*mine, other])
    assert (large.model, tiny.model) == ("large", "tiny")
    assert tiny.clemscore == score(map(result_of, mine)).clemscore == 50.0
    (game,) = tiny.games
    assert {e.outcome: e.episodes for e in game.outcomes} == {"success": 1, "aborted": 1}
    assert (game.episodes, game.moves, game.played, game.quality) == (2, (2, 2, 2, 2, 6), 50.0, 100.0)


def test_partners_and_scripted_players_are_not_whose_play_it_is():
    seats = (PLAYERS[0], Player("Player 2", "Guesser", "frozen", learner=False))
    assert learner_of(make_episode(players=seats)) == "tiny"
    assert learner_of(make_episode(players=OTHER[1:])) == "no model"


def test_it_is_read_from_a_manifest_as_it_was_written():
    (played,) = played_of([make_episode()])
    assert from_dict(ModelPlayed, to_dict(played)) == played
