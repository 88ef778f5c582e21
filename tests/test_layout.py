"""Every result layout of clemcore is found and read; keys come from what was played, never from folder names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from results_folder import TABOO_PROMPTS, api_call, scores, taboo, taboo_calls, write, write_episode

from pairgen.clem.layout import Unreadable, error_of, find_episodes, name_runs, read_episode, run_folder

EPISODES = ["m/taboo/0_high_en/episode_9", "m/taboo/0_high_en/episode_10", "n/taboo/high_en/instance_00003"]


def test_both_kinds_of_folder_names_are_found_in_natural_order(tmp_path):
    for folder in EPISODES[::-1]:
        write_episode(tmp_path / folder, taboo())
    found = find_episodes(tmp_path)
    assert [str(f.relative_to(tmp_path)) for f in found.episodes] == EPISODES
    assert not found.unfinished
    assert find_episodes(tmp_path / EPISODES[0]).episodes == [tmp_path / EPISODES[0]]


def test_an_episode_without_interactions_is_unfinished_with_clemcores_own_error(tmp_path):
    folder = tmp_path / EPISODES[2]
    write(folder / "instance.json", {"game_id": 3})
    write(folder / "error.json", {"error": "LookupError", "message": "\n****\n  wordnet\n  is missing\n****"})
    assert find_episodes(tmp_path).unfinished == [folder]
    assert error_of(folder) == "LookupError: wordnet is missing"


def test_links_are_followed_but_not_in_circles(tmp_path):
    write_episode(tmp_path / "store" / EPISODES[0], taboo())
    results = tmp_path / "results"
    results.mkdir()
    (results / "m").symlink_to(tmp_path / "store" / "m")
    (tmp_path / "store" / "m" / "again").symlink_to(results)
    assert [f.name for f in find_episodes(results).episodes] == ["episode_9"]


def test_the_key_is_what_meta_says(tmp_path):
    folder = write_episode(tmp_path / "m/other_game/3_low/episode_7", taboo(), game="taboo", experiment="high", task=21)
    recorded = read_episode(folder)
    assert (recorded.game, recorded.experiment, recorded.task_id) == ("taboo", "high", 21)
    assert recorded.clemcore_version == "3.2.0"
    assert [tuple(vars_of(p)) for p in recorded.players] == [
        ("Player 1", "Describer", "small"),
        ("Player 2", "Guesser", "small"),
    ]


def vars_of(player):
    return player.name, player.role, player.model


def test_what_meta_lacks_is_read_from_instance_and_experiment(tmp_path):
    folder = write_episode(tmp_path / EPISODES[0], taboo(), experiment="low_en", task=8, meta={"game_name": "taboo"})
    recorded = read_episode(folder)
    assert (recorded.game, recorded.experiment, recorded.task_id) == ("taboo", "low_en", 8)


def test_requests_of_all_players_in_one_file_or_in_one_each(tmp_path):
    old = write_episode(tmp_path / EPISODES[0], taboo(), calls=taboo_calls())
    own = {"Player 2": [api_call(TABOO_PROMPTS[1], "GUESS: may")]}
    new = write_episode(tmp_path / EPISODES[2], taboo(), own_calls=own)
    assert {player: len(calls) for player, calls in read_episode(old).calls.items()} == {"": 4}
    assert {player: len(calls) for player, calls in read_episode(new).calls.items()} == {"Player 2": 1}


def test_a_branch_has_the_instance_and_the_requests_of_its_folder(tmp_path):
    folder = write_episode(tmp_path / EPISODES[2] / "branch_00001", taboo(), meta={"game_name": "taboo"})
    (folder / "instance.json").replace(folder.parent / "instance.json")
    (folder.parent / "experiment.json").replace(folder.parent.parent / "experiment.json")
    write(folder.parent / "requests.json", taboo_calls())
    recorded = read_episode(folder)
    assert (recorded.experiment, recorded.task_id, len(recorded.calls[""])) == ("high_en", 4, 4)
    assert find_episodes(tmp_path) == ([folder], [])
    assert run_folder(folder, tmp_path) == tmp_path / "n"


def test_scripted_players_are_called_programmatic_whatever_clemcore_called_them(tmp_path):
    players = {"Player 1": ("A", "mock"), "Player 2": ("B", "programmatic"), "Player 3": ("C", "big")}
    recorded = read_episode(write_episode(tmp_path / EPISODES[0], taboo(), players=players))
    assert [p.programmatic for p in recorded.players] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"meta": {"game_name": "ta', "no whole JSON"),
        ("", "no whole JSON"),
        ("[1]", "no object"),
        ("{}", "no meta"),
        ('{"meta": {"game_name": "taboo", "experiment_name": "e", "game_id": "x"}, "players": {}}', "whole game_id"),
        ('{"meta": {"game_name": "t", "experiment_name": "e", "game_id": 1}, "players": {"GM": "text"}}', "players"),
        (
            '{"meta": {"game_name": "t", "experiment_name": "e", "game_id": 1}, "players": {}, "turns": [[{}]]}',
            "turns",
        ),
    ],
    ids=["torn", "empty", "list", "no meta", "bad number", "old players", "bad events"],
)
def test_interactions_that_cannot_be_read_say_why(tmp_path, text, reason):
    (tmp_path / "interactions.json").write_text(text)
    with pytest.raises(Unreadable, match=reason):
        read_episode(tmp_path)


def test_torn_files_beside_the_interactions_cost_only_themselves(tmp_path):
    folder = write_episode(tmp_path / EPISODES[0], taboo(), score=scores("success", 50), calls=taboo_calls())
    for name in ("scores.json", "requests.json", "instance.json"):
        (folder / name).write_text("{")
    recorded = read_episode(folder)
    assert (recorded.scores, recorded.instance, recorded.calls[""]) == (None, None, [])
    assert len(recorded.unread) == 3


def test_a_run_is_named_by_as_little_as_tells_it_apart():
    folders = [Path(p) for p in ("/x/a/m", "/x/b/m", "/x/b/n", "/x/b/k/epoch_00001", "/x/b/k/epoch_00002")]
    assert list(name_runs(folders).values()) == ["a/m", "k/epoch_00001", "k/epoch_00002", "b/m", "n"]


def test_the_run_of_a_game_folder_lies_above_it(tmp_path):
    folder = write_episode(tmp_path / EPISODES[0], taboo())
    for root in (tmp_path, tmp_path / "m", tmp_path / "m/taboo", folder):
        assert run_folder(folder, root) == tmp_path / "m"


def test_reading_needs_no_clemcore():
    code = "import sys, pairgen.clem.layout; print('clemcore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_number_may_be_written_as_text(tmp_path):
    folder = write_episode(tmp_path / EPISODES[0], taboo(), task="17")
    assert json.loads((folder / "interactions.json").read_text())["meta"]["game_id"] == "17"
    assert read_episode(folder).task_id == 17
