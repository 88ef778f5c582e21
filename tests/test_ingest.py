"""`pairgen import`: complete, exact, and nothing left behind where it cannot work."""

import json

import pytest
from click.testing import CliRunner
from results_folder import (
    TABOO_PROMPTS,
    TABOO_REPLIES,
    api_call,
    ask,
    local_call,
    note,
    say,
    scores,
    taboo,
    taboo_calls,
    write,
    write_episode,
)

from pairgen.commands.import_ import command
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import EpisodeRow, Message, MoveRow, instance_hash
from pairgen.store import read_episodes, read_json, read_table
from pipelines.ingest import import_results
from pipelines.recorded import judge

WON = "m-t0.0/taboo/0_high_en/episode_0"
ABORTED = "m-t0.0/taboo/0_high_en/episode_1"


@pytest.fixture
def results(tmp_path):
    """Two episodes of one model: one won, one aborted."""
    root = tmp_path / "results"
    write_episode(root / WON, taboo(), score=scores("success", 50.0), calls=taboo_calls())
    write_episode(root / ABORTED, taboo("aborted"), task=7, score=scores("aborted"))
    return root


def run(*arguments):
    return CliRunner().invoke(command, [str(a) for a in arguments])


def imported(results, out, **options):
    manifest = import_results([results], out, **options)
    return manifest, read_episodes(out)


def test_the_summary_has_the_numbers_of_clem_eval(results, tmp_path):
    done = run(results, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["episodes"] == 2
    assert summary["outcomes"] == {"taboo": {"success": 1, "aborted": 1}}
    assert summary["model_moves"] == {"taboo": 7}
    assert (summary["average_played"], summary["average_quality"], summary["clemscore"]) == (50.0, 50.0, 25.0)
    assert (summary["prompts_checked"], summary["prompts_differ"], summary["skipped"]) == (4, 0, [])


def test_the_run_folder_is_a_rollouts(results, tmp_path):
    manifest, episodes = imported(results, tmp_path / "run")
    assert read_json(tmp_path / "run/run.json")["command"] == "import"
    assert read_json(tmp_path / "run/manifest.json") == manifest
    assert [r.outcome for r in read_table(tmp_path / "run/episodes.parquet", EpisodeRow)] == ["success", "aborted"]
    assert len(read_table(tmp_path / "run/moves.parquet", MoveRow)) == sum(len(e.moves) for e in episodes) == 7


def test_an_episode_has_everything_its_folder_says(results, tmp_path):
    _, (won, aborted) = imported(results, tmp_path / "run")
    assert won.key == ("taboo", "high_en", 4, 0)
    assert (won.outcome, won.main_score, won.source, won.clemcore_version) == ("success", 50.0, "m-t0.0", "3.2.0")
    assert won.instance_hash == instance_hash("taboo", {"game_id": 99, "target_word": "word4"})
    assert (aborted.outcome, aborted.main_score, aborted.fault) == ("aborted", None, None)


def test_moves_are_what_was_asked_and_said(results, tmp_path):
    _, (won, aborted) = imported(results, tmp_path / "run")
    assert [m.reply for m in won.moves] == TABOO_REPLIES
    assert [[{"role": m.role, "content": m.content} for m in move.prompt] for move in won.moves] == TABOO_PROMPTS
    assert [(m.player, m.role, m.finish_reason) for m in won.moves[:2]] == [
        ("Player 1", "Describer", "stop"),
        ("Player 2", "Guesser", "stop"),
    ]
    assert {m.violation for m in won.moves} == {""}
    assert [m.violation for m in aborted.moves] == ["", "", "invalid format: abort game"]
    assert {(m.finish_reason, m.prompt_tokens) for m in aborted.moves} == {("unknown", -1)}


def test_a_message_list_that_was_sent_is_the_prompt_as_it_stands(tmp_path):
    sent = [{"role": "system", "content": "Be brief."}, *TABOO_PROMPTS[0]]
    calls = {"Player 1": [api_call(sent, TABOO_REPLIES[0]), api_call(TABOO_PROMPTS[2], TABOO_REPLIES[2])]}
    write_episode(tmp_path / "r/m/taboo/high_en/instance_00004", taboo(), own_calls=calls)
    manifest, (episode,) = imported(tmp_path / "r", tmp_path / "run")
    assert episode.moves[0].prompt == (Message("system", "Be brief."), Message("user", "Describe jan."))
    assert (episode.moves[0].raw_reply, episode.moves[0].cached_tokens) == ("CLUE: a month\n", 4)
    assert (manifest["prompts_checked"], manifest["prompts_differ"]) == (2, 1)


def test_a_prompt_that_differs_from_the_one_sent_is_named(results, tmp_path):
    calls = taboo_calls()
    calls[2] = local_call(TABOO_PROMPTS[0], TABOO_REPLIES[2], calls[2]["timestamp"])
    write(results / WON / "requests.json", calls)
    done = run(results, "--out", tmp_path / "run")
    assert "4 checked against what was sent, 1 differ" in done.output
    assert f"the first that differs: {results / WON}, move 2 (Player 1)" in done.output


def test_scripted_and_human_players_make_no_moves(tmp_path):
    players = {"Player 1": ("A", "small"), "Player 2": ("B", "programmatic"), "Player 3": ("C", "human")}
    events = [say("Player 1", "a"), say("Player 2", "b"), say("Player 3", "c")]
    write_episode(tmp_path / "r/m/g/e/episode_0", events, players=players, calls=[])
    _, (episode,) = imported(tmp_path / "r", tmp_path / "run")
    assert [m.player for m in episode.moves] == ["Player 1"]
    assert len(episode.players) == 3


def test_a_reply_that_the_game_put_into_the_models_mouth_is_marked(tmp_path):
    events = [
        ask("Player 1", "rules", "pseudo"),
        say("Player 1", "Ok.", "pseudo"),
        ask("Player 1", "aside?", "forget"),
        say("Player 1", "yes", "forget"),
        note("parse", "NA"),
    ]
    write_episode(tmp_path / "r/m/g/e/episode_0", events)
    _, (episode,) = imported(tmp_path / "r", tmp_path / "run")
    assert [(m.finish_reason, m.violation) for m in episode.moves] == [("pseudo", ""), ("unknown", "parse: NA")]


def test_episodes_without_a_readable_score_stay_unscored(results, tmp_path):
    (results / WON / "scores.json").write_text("{")
    (results / ABORTED / "scores.json").unlink()
    done = run(results, "--out", tmp_path / "run")
    assert {(e.outcome, e.main_score) for e in read_episodes(tmp_path / "run")} == {("unscored", None)}
    assert "2 episodes have no score: run clem score" in done.output
    assert f"read in part: {results / WON}: scores.json is no whole JSON" in done.output


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({"Aborted": 1, "Main Score": float("nan")}, ("aborted", None)),
        ({"Aborted": 1, "Lose": float("nan"), "Success": float("nan"), "Main Score": 0}, ("aborted", 0.0)),
        ({"Aborted": 0, "Success": 1, "Main Score": 100}, ("success", 100.0)),
        ({"Aborted": False, "Success": 0, "Lose": 1, "Main Score": 0}, ("lose", 0.0)),
        ({"Aborted": 0, "Success": 0, "Main Score": 12.5}, ("lose", 12.5)),
        ({"Main Score": 12.5}, ("unscored", 12.5)),
        ({"Aborted": "no", "Main Score": None}, ("unscored", None)),
        (None, ("unscored", None)),
    ],
)
def test_the_outcome_is_the_scorers(said, outcome):
    assert judge(said) == outcome


def test_several_models_are_sources_and_their_plays_samples(results, tmp_path):
    other = tmp_path / "other"
    write_episode(other / "a-t0.0/taboo/high_en/instance_00004", taboo("aborted"), score=scores("aborted"))
    import_results([results, other], tmp_path / "run")
    keys = [(e.task_id, e.sample, e.source) for e in read_episodes(tmp_path / "run")]
    assert keys == [(4, 0, "a-t0.0"), (4, 1, "m-t0.0"), (7, 0, "m-t0.0")]
    sources = read_json(tmp_path / "run/manifest.json")["sources"]
    assert {name: numbers["clemscore"] for name, numbers in sources.items()} == {"a-t0.0": None, "m-t0.0": 25.0}


def test_models_of_the_same_name_are_told_apart_by_what_is_above_them(results, tmp_path):
    write_episode(tmp_path / "again" / WON, taboo(), score=scores("success", 50.0))
    import_results([results, tmp_path / "again"], tmp_path / "run")
    found = {(e.task_id, e.sample, e.source) for e in read_episodes(tmp_path / "run")}
    assert found == {(4, 0, "again/m-t0.0"), (4, 1, "results/m-t0.0"), (7, 0, "results/m-t0.0")}


def test_repeated_plays_epochs_and_branches_are_all_kept(tmp_path):
    for epoch in (1, 2, 10):
        for branch in (1, 2):
            folder = tmp_path / f"r/m/epoch_{epoch:05}/taboo/high_en/instance_00004/branch_{branch:05}"
            write_episode(folder, taboo(), score=scores("success", 50.0))
    _, episodes = imported(tmp_path / "r", tmp_path / "run")
    assert [(e.sample, e.source) for e in episodes] == [
        (0, "m/epoch_00001"), (1, "m/epoch_00001"), (2, "m/epoch_00002"), (3, "m/epoch_00002"),
        (4, "m/epoch_00010"), (5, "m/epoch_00010"),
    ]  # fmt: skip


def test_a_part_of_the_results_gives_the_same_episodes_as_all_of_them(results, tmp_path):
    for name, part in (("all", results), ("model", results / "m-t0.0"), ("game", results / "m-t0.0/taboo")):
        import_results([part], tmp_path / name)
    journals = {(tmp_path / name / "episodes.jsonl").read_bytes() for name in ("all", "model", "game")}
    assert len(journals) == 1


def test_a_folder_given_twice_is_read_once(results, tmp_path):
    import_results([results, results / "m-t0.0"], tmp_path / "run")
    assert len(read_episodes(tmp_path / "run")) == 2


def test_the_same_input_gives_the_same_bytes(results, tmp_path):
    for name in ("one", "two"):
        import_results([results], tmp_path / name)
    for file in ("run.json", "episodes.jsonl", "episodes.parquet", "moves.parquet", "manifest.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_torn_and_unfinished_episodes_are_skipped_and_named(results, tmp_path):
    (results / ABORTED / "interactions.json").write_text('{"meta": {')
    write(results / "m-t0.0/taboo/0_high_en/episode_2/instance.json", {"game_id": 9})
    done = run(results, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0
    skipped = json.loads(done.stdout.splitlines()[-1])["skipped"]
    assert [(s["path"], s["reason"][:24]) for s in skipped] == [
        (str(results / "m-t0.0/taboo/0_high_en/episode_2"), "not played to its end: t"),
        (str(results / ABORTED), "interactions.json is no "),
    ]


def test_nothing_readable_leaves_no_run(results, tmp_path):
    for folder in (WON, ABORTED):
        (results / folder / "interactions.json").write_text("torn")
    with pytest.raises(PairgenError, match=r"none of the 2 episodes .* give results") as caught:
        import_results([results], tmp_path / "run")
    assert not isinstance(caught.value, UsageProblem)
    assert not (tmp_path / "run").exists()


def test_nothing_readable_leaves_the_run_that_was_there(results, tmp_path):
    import_results([results], tmp_path / "run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PairgenError, match=r"holds no interactions\.json: give a folder"):
        import_results([tmp_path / "empty"], tmp_path / "run", overwrite=True)
    assert len(read_episodes(tmp_path / "run")) == 2


def test_a_folder_that_is_missing_is_wrong_usage(tmp_path):
    with pytest.raises(UsageProblem, match=r"nowhere does not exist: give a folder with clembench results"):
        import_results([tmp_path / "nowhere"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_replaced_only_when_that_was_said(results, tmp_path):
    import_results([results], tmp_path / "run")
    before = (tmp_path / "run/episodes.jsonl").read_bytes()
    with pytest.raises(UsageProblem, match="not empty: say --overwrite"):
        import_results([results], tmp_path / "run")
    import_results([results], tmp_path / "run", overwrite=True)
    assert (tmp_path / "run/episodes.jsonl").read_bytes() == before


def test_results_within_the_run_that_would_be_replaced_are_safe(results, tmp_path):
    import_results([results], tmp_path / "run")
    results.rename(tmp_path / "run/clem")
    with pytest.raises(UsageProblem, match="use another --out"):
        import_results([tmp_path / "run/clem"], tmp_path / "run", overwrite=True)
    assert (tmp_path / "run/clem" / WON / "interactions.json").exists()


def test_a_failure_on_the_way_takes_the_new_folder_away(results, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pairgen.store.write_tables", fails)
    with pytest.raises(OSError, match="disk full"):
        import_results([results], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_import_replaces_imports_alone(results, tmp_path):
    out = tmp_path / "run"
    import_results([results], out)
    import_results([results], out, overwrite=True)
    saved = read_json(out / "run.json")
    (out / "run.json").write_text(json.dumps({**saved, "command": "rollout"}))
    with pytest.raises(UsageProblem, match="was played by pairgen rollout"):
        import_results([results], out, overwrite=True)
    assert (out / "episodes.jsonl").exists()
