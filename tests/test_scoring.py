"""Scores are those of clem eval, to the digit."""

import pytest

from pipelines.scoring import Result, score, summary, table_lines


def result(game, outcome, main=None, moves=2):
    return Result(game, "m", outcome, main, moves)


def test_means_over_games_are_means_of_rounded_means():
    scores = score(
        [
            result("b", "success", 100.0), result("b", "lose", 0.0), result("b", "aborted"),
            result("a", "success", 100 / 3), result("a", "aborted"), result("a", "aborted"),
        ]
    )  # fmt: skip
    assert [g.game for g in scores.games] == ["a", "b"]
    assert [(g.played, g.quality) for g in scores.games] == [(33.33, 33.33), (66.67, 50.0)]
    assert scores[1:] == (50.0, 41.66, 20.83)


def test_a_game_that_is_always_aborted_counts_as_not_played_and_has_no_quality():
    scores = score([result("a", "success", 80.0), result("b", "aborted")])
    assert scores[1:] == (50.0, 80.0, 40.0)
    assert scores.games[1].quality is None


def test_unscored_and_failed_episodes_enter_no_mean():
    numbers = summary(score([result("a", "success", 80.0), result("a", "unscored"), result("b", "error")]))
    assert (numbers["average_played"], numbers["average_quality"], numbers["clemscore"]) == (100.0, 80.0, 80.0)
    assert numbers["outcomes"] == {"a": {"success": 1, "unscored": 1}, "b": {"error": 1}}
    assert (numbers["episodes"], numbers["played"]) == (3, 2)


def test_nothing_scored_has_no_score():
    assert score([])[1:] == (None, None, None)
    assert score([result("a", "unscored")])[1:] == (None, None, None)
    assert score([result("a", "aborted")])[1:] == (0.0, None, None)


@pytest.mark.parametrize(("value", "rounded"), [(1.115, 1.12), (0.125, 0.12), (0.135, 0.14), (2.675, 2.68)])
def test_ties_are_rounded_as_numpy_does(value, rounded):
    assert score([result("a", "success", value)]).average_quality == rounded


def test_means_are_summed_as_pandas_does():
    pandas = pytest.importorskip("pandas")
    values = [(i * 7919 % 10_007) / 97 for i in range(400)]
    for size in range(1, 400):
        frame = pandas.DataFrame({"game": "a", "value": values[:size]})
        expected = frame.groupby("game").mean()["value"].round(2).iloc[0]
        assert score([result("a", "success", v) for v in values[:size]]).average_quality == expected


def test_the_table_has_a_line_for_each_game_and_the_score():
    lines = table_lines(summary(score([result("a", "success", 80.0), result("b", "aborted", moves=1)])))
    assert lines[1].split() == ["a", "1", "1", "0", "0", "0", "2", "100.00", "80.00"]
    assert lines[2].split() == ["b", "1", "0", "0", "1", "0", "1", "0.00", "-"]
    assert lines[3] == "played 50.00 %, quality 80.00, clemscore 40.00"
