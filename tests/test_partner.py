"""A learner and its frozen partner at one table: who says what, from which side, and whose moves become data."""

import json
import subprocess
import sys

import polars as pl
import pytest

from corruptions import STRATEGIES
from pairgen.clem.client import DEMO_GAMES
from pairgen.errors import UsageProblem
from pairgen.records import MoveRow, Pair
from pairgen.store import read_episodes, read_json, read_table
from pipelines.assemble import assemble
from pipelines.corrupt import CorruptConfig
from pipelines.harvest import Caps, find_peers, find_rivals, harvest
from pipelines.rollout_config import RolloutConfig
from pipelines.session import lines, roll_out, summary

OPTIONS = r'the words "(?P<a>\w+), (?P<b>\w+)"\.'
LEARNER = {
    "replies": [
        {"first": r'Now give a hint for the notes "(?P<notes>[^"]+)"', "reply": r"HINT: It is \g<notes>."},
        {"first": OPTIONS, "reply": r"GUESS: \g<b>"},
        {"first": "sentence", "reply": "SENTENCE: I say too little."},
    ]
}
PARTNER = {
    "replies": [
        {"first": "Now give a hint", "reply": "HINT: I do not know."},
        {"first": OPTIONS, "reply": r"GUESS: \g<a>"},
    ]
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run of a game for two and a game for one, each instance twice: its folder, configuration and manifest."""
    folder = tmp_path_factory.mktemp("partner")
    for name, script in (("good", LEARNER), ("bad", PARTNER)):
        (folder / f"{name}.json").write_text(json.dumps(script))
    config = RolloutConfig(
        model=str(folder / "good.json"), engine="scripted", partner=str(folder / "bad.json"), samples=2, limit=8,
        games=("hintmatch", "wordweave"), temperature=0.7,
    )  # fmt: skip
    manifest = roll_out(folder / "run", config)
    return folder / "run", config, manifest


def learners(episode):
    return [p.name for p in episode.players if p.learner]


def test_each_instance_is_played_once_from_each_side(played):
    episodes = [e for e in read_episodes(played[0]) if e.game == "hintmatch"]
    sides = {}
    for e in episodes:
        (name,) = learners(e)
        sides.setdefault(e.key.instance, []).append(name)
    assert len(sides) == 8
    assert all(sorted(names) == ["Player 1", "Player 2"] for names in sides.values())
    for experiment in {e.experiment for e in episodes}:
        first = [learners(e)[0] for e in episodes if e.experiment == experiment and e.sample == 0]
        assert sorted(first) == ["Player 1", "Player 1", "Player 2", "Player 2"]


def test_each_move_is_by_the_model_that_it_names(played):
    for e in read_episodes(played[0]):
        models = {p.name: p.model for p in e.players}
        for move in e.moves:
            by_partner = move.player in e.partners
            assert move.model == models[move.player] == ("bad.json" if by_partner else "good.json")
            if move.role == "Hinter":
                assert (move.reply == "HINT: I do not know.") is by_partner
            if move.role == "Matcher":
                options = move.prompt[0].content.rsplit('the words "', 1)[1].split('"')[0].split(", ")
                assert move.reply == f"GUESS: {options[0 if by_partner else 1]}"
    rows = read_table(played[0] / "moves.parquet", MoveRow)
    assert {(r.model, r.learner) for r in rows} == {("good.json", True), ("bad.json", False)}
    seats = pl.read_parquet(played[0] / "episodes.parquet").explode("players").unnest("players")
    assert seats.filter(~pl.col("learner"))["model"].unique().to_list() == ["bad.json"]


def test_a_game_for_one_is_the_learners(played):
    alone = [e for e in read_episodes(played[0]) if e.game == "wordweave"]
    assert len(alone) == 16
    assert not any(e.partners for e in alone)
    assert {m.model for e in alone for m in e.moves} == {"good.json"}


def test_clemcore_finds_both_sides_under_their_names(played):
    run = played[0]
    clem = run / "clem"
    duos = {"good.json--bad.json": "Player 1", "bad.json--good.json": "Player 2"}
    assert {p.name for p in clem.iterdir()} == {*duos, "good.json", "good.json.sample1"}
    for folder, learner in duos.items():
        found = [json.loads(p.read_text()) for p in (clem / folder).rglob("interactions.json")]
        assert len(found) == 8
        for data in found:
            assert data["meta"]["results_folder"] == folder
            assert [m["model_spec"]["model_name"] for m in data["player_models"].values()] == folder.split("--")
            named = {name: p["model_name"] for name, p in data["players"].items() if name != "GM"}
            assert named == dict(zip(("Player 1", "Player 2"), folder.split("--"), strict=True))
            assert named[learner] == "good.json"
    before = {p: json.loads(p.read_text())["episode scores"] for p in clem.rglob("scores.json")}
    for path in before:
        path.unlink()
    for command in ("score", "eval"):
        subprocess.run(
            [sys.executable, "-m", "clemcore.cli", command, "-r", clem], cwd=DEMO_GAMES, check=True, capture_output=True
        )
    (DEMO_GAMES / "clembench.log").unlink(missing_ok=True)
    after = {p: json.loads(p.read_text())["episode scores"] for p in clem.rglob("scores.json")}
    assert set(after) == set(before)
    assert [after[p]["Success"] for p in before] == [scores["Success"] for scores in before.values()]
    table = (clem / "results.csv").read_text()
    assert all(f"\n{folder}," in table for folder in duos)


def test_a_partners_moves_are_no_data(played, tmp_path):
    episodes = read_episodes(played[0])
    theirs = [m for e in episodes for m in e.moves if m.player in e.partners]
    won = [e for e in episodes if e.outcome == "success" and e.partners]
    assert {learners(e)[0] for e in won} == {"Player 1", "Player 2"}  # so that there is something to leave out
    result = harvest(episodes, Caps(0, 0), 1)
    assert [d.reason for d in result.drops].count("partner") == len(theirs)
    assert {w.move.model for w in result.kept} == {"good.json"}
    said = {m.reply for e in episodes for m in e.moves if m.player not in e.partners}
    assert {reply for replies in find_peers(episodes, 1).values() for reply in replies} <= said
    assert {rival.reply for rivals in find_rivals(episodes).values() for rival in rivals} <= said
    config = CorruptConfig(strategy=("verbose",), no_eval_split=True, verify=False)
    made = assemble([played[0]], tmp_path / "pairs", config, STRATEGIES)
    pairs = [p for s in ("train", "test") for p in _pairs(tmp_path / "pairs" / "full" / f"{s}.parquet")]
    assert {p.model for p in pairs} == {"good.json"}
    assert {p.player for p in pairs} == {"Player 1", "Player 2"}
    assert made.models == ("good.json",)
    card = (tmp_path / "pairs" / "README.md").read_text()
    assert "partner bad.json" in card
    assert "partner (a partner model spoke" in card


def _pairs(path):
    return read_table(path, Pair) if path.exists() else []


def test_the_run_names_the_partner(played):
    run, config, manifest = played
    assert read_json(run / "run.json")["config"]["partner"] == config.partner
    said = summary(run, manifest)
    assert (said["learner"], said["partner"]) == ("good.json", "bad.json")
    assert manifest["learner_seats"] == {"Player 1": 8, "Player 2": 8}
    assert any("partner bad.json" in line for line in lines(run, manifest))


@pytest.mark.parametrize("change", [{"partner": "another"}, {"learner": "first"}, {"lora": "adapter"}])
def test_a_resumed_run_keeps_its_players(played, change):
    run, _, _ = played
    (name,) = change
    before = (run / "episodes.jsonl").read_bytes()
    with pytest.raises(UsageProblem, match=f"--resume goes on.*--{name} "):
        roll_out(run, RolloutConfig(model="", **change), given={name}, resume=True)
    assert (run / "episodes.jsonl").read_bytes() == before
