"""No pair of an evaluation instance stays; what cannot be read about them stops the command."""

import csv
import json
from typing import NamedTuple

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import eval_split, make_episode, make_pair

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Drop, InstanceKey, Pair, instance_hash
from pipelines import eval_split as source
from pipelines.decontaminate import NO_EVAL_SPLIT, Net, caught, unmatched_experiments, unmatched_games
from pipelines.slim import frame_of, parted, slim

KEY = InstanceKey("taboo", "high_en", 3)


class Clean(NamedTuple):
    kept: list[Pair]
    drops: list[Drop]


def clean(pairs, split, episodes=()):
    net = Net(split)
    net.learn(episodes)
    kept, drops = parted(pairs, caught(slim(frame_of(pairs)), net), "decontaminate")
    return Clean(kept, drops)


def test_a_pair_of_an_evaluation_instance_is_dropped_by_key():
    result = clean([make_pair(3), make_pair(4), make_pair(3, game="wordle")], eval_split(KEY))
    assert [p.instance for p in result.kept] == [("taboo", "high_en", 4), ("wordle", "high_en", 3)]
    assert [(d.reason, d.stage, d.task_id) for d in result.drops] == [("eval_key", "decontaminate", 3)]


def test_the_same_task_under_another_number_is_dropped_by_content():
    content = instance_hash("taboo", {"target": "high_en 9"})
    result = clean([make_pair(9), make_pair(4)], eval_split(KEY, contents={content: KEY}))
    assert [(d.reason, d.task_id) for d in result.drops] == [("eval_content", 9)]


def test_the_content_of_an_instance_met_by_key_is_learned():
    twin = make_pair(77, instance_hash=make_episode(3).instance_hash)
    assert not clean([twin], eval_split(KEY)).drops
    assert [d.reason for d in clean([twin], eval_split(KEY), [make_episode(3)]).drops] == ["eval_content"]


def test_an_unknown_content_is_no_match():
    assert not clean([make_pair(4, instance_hash="")], eval_split(KEY, contents={"": KEY})).drops


@pytest.mark.parametrize(("known", "met"), [("high_en", "0_high_en"), ("2_high_en", "high_en")])
def test_the_place_of_an_experiment_in_its_file_is_no_part_of_its_name(known, met):
    result = clean([make_pair(3, experiment=met)], eval_split(KEY._replace(experiment=known)))
    assert [d.reason for d in result.drops] == ["eval_key"]


def test_experiments_that_differ_by_a_leading_number_alone_are_two():
    assert not clean([make_pair(3, experiment="4_words")], eval_split(KEY._replace(experiment="3_words"))).drops


def test_kept_and_dropped_are_the_input():
    pairs = [make_pair(t, game=g) for t in range(20) for g in ("taboo", "wordle")]
    result = clean(pairs, eval_split(*(KEY._replace(task_id=t) for t in range(5))))
    assert sorted([p.pair_id for p in result.kept] + [d.item_id for d in result.drops]) == sorted(
        p.pair_id for p in pairs
    )


def test_names_of_games_that_do_not_meet_are_told():
    split = eval_split(KEY, InstanceKey("wordle_withclue", "x", 1), InstanceKey("chess", "x", 1))
    lines = unmatched_games(split, ["taboo", "wordle_with_clue"])
    assert "chess" in lines[0] and "wordle_withclue (renamed wordle_with_clue?)" in lines[0]
    assert "wordle_with_clue" in lines[1]
    assert unmatched_games(eval_split(KEY), ["taboo"]) == unmatched_games(NO_EVAL_SPLIT, ["taboo"]) == []


ROWS = [{"game": "taboo", "experiment": "high_en", "task_id": 3}, {"game": "wordle", "experiment": "x", "task_id": 0}]


def write_rows(path, rows):
    if path.suffix == ".csv":
        with path.open("w", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("\ufeff" + "\n".join(json.dumps(r) for r in rows) + "\n\n", encoding="utf-8")
    return path


def read(**given):
    return source.read_eval_split(**{"keys": [], "split": "", "results": [], "none": False, **given})


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_key_files_of_each_kind_are_read(tmp_path, suffix):
    split = read(keys=[write_rows(tmp_path / f"keys{suffix}", ROWS)])
    assert split.keys == {KEY, InstanceKey("wordle", "x", 0)}
    assert (split.sources[0].name, split.sources[0].keys) == (f"keys{suffix}", 2)


@pytest.mark.parametrize("number", ["3", 3, 3.0, "3.0"])
def test_a_number_may_come_as_text_or_as_a_whole_float(tmp_path, number):
    assert read(keys=[write_rows(tmp_path / "k.jsonl", [{**ROWS[0], "task_id": number}])]).keys == {KEY}


@pytest.mark.parametrize(
    "row",
    [
        {**ROWS[0], "task_id": None},
        {**ROWS[0], "task_id": True},
        {**ROWS[0], "task_id": 3.5},
        {**ROWS[0], "task_id": "three"},
        {**ROWS[0], "task_id": float("inf")},
        {**ROWS[0], "game": None},
        {**ROWS[0], "game": 7},
        {**ROWS[0], "experiment": None},
        {"game": "taboo", "experiment": "x"},
        ["taboo", "high_en", 3],
    ],
)
def test_a_row_that_names_no_instance_stops(tmp_path, row):
    with pytest.raises(PairgenError, match="row 2 does not name an instance.*game, experiment and task_id"):
        read(keys=[write_rows(tmp_path / "k.jsonl", [ROWS[0], row])])


@pytest.mark.parametrize(("name", "text"), [("k.jsonl", "{torn"), ("k.jsonl", "\n"), ("k.parquet", "no parquet")])
def test_a_key_file_that_cannot_be_read_or_is_empty_stops(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(PairgenError, match="eval-keys"):
        read(keys=[tmp_path / name])


def test_another_kind_of_key_file_is_refused(tmp_path):
    with pytest.raises(UsageProblem, match=r"\.jsonl, \.csv or \.parquet"):
        read(keys=[tmp_path / "keys.txt"])


def write_result(folder, meta, instance=None):
    folder.mkdir(parents=True)
    if meta is not None:
        data = {"meta": meta, "players": {"Player 1": {"model_name": "m"}}, "turns": []}
        (folder / "interactions.json").write_text(json.dumps(data))
    if instance is not None:
        (folder / "instance.json").write_text(json.dumps(instance))
    (folder.parent / "experiment.json").write_text(json.dumps({"name": "high_en"}))


META = {"game_name": "taboo", "experiment_name": "high_en", "game_id": 3}


def test_results_give_keys_and_contents(tmp_path):
    write_result(tmp_path / "m/taboo/0_high_en/episode_0", META, {"game_id": 3, "target": "high_en 3"})
    write_result(tmp_path / "m/taboo/0_high_en/episode_1", {**META, "game_id": 8})
    split = read(results=[tmp_path])
    assert split.keys == {KEY, KEY._replace(task_id=8)}
    assert split.contents == {make_episode(3).instance_hash: KEY}
    assert [d.reason for d in clean([make_pair(90, instance_hash=make_episode(3).instance_hash)], split).drops] == [
        "eval_content"
    ]


def test_an_episode_that_was_begun_and_never_ended_counts_too(tmp_path):
    write_result(tmp_path / "m/taboo/0_high_en/episode_0", META)
    write_result(tmp_path / "m/taboo/0_high_en/episode_1", None, {"game_id": 9})
    assert read(results=[tmp_path]).keys == {KEY, KEY._replace(task_id=9)}


def test_results_that_do_not_say_what_was_played_stop(tmp_path):
    with pytest.raises(PairgenError, match=r"holds no interactions\.json"):
        read(results=[tmp_path])
    write_result(tmp_path / "m/taboo/0_high_en/episode_0", {"game_name": "taboo"})
    with pytest.raises(PairgenError, match="does not say which instance"):
        read(results=[tmp_path])


def test_sources_add_up_and_each_is_recorded(tmp_path):
    write_result(tmp_path / "m/taboo/0_high_en/episode_0", {**META, "game_id": 8})
    split = read(keys=[write_rows(tmp_path / "k.jsonl", ROWS)], results=[tmp_path])
    assert len(split.keys) == 3
    assert [s.kind for s in split.sources] == ["keys", "results"]
    assert len({s.revision for s in split.sources}) == 2


def test_none_is_said_alone(tmp_path):
    assert read(none=True) == NO_EVAL_SPLIT
    with pytest.raises(UsageProblem, match="--no-eval-split"):
        read(none=True, split="a/b")


@pytest.fixture
def hub(monkeypatch):
    """A Hub that holds the playpen split and notes what it is asked."""
    asked = []

    def dataset_info(self, repo, revision=None, timeout=None):
        asked.append((repo, revision, timeout))
        return type("Info", (), {"sha": "c0ffee"})

    def load_dataset(repo, config, split, revision, download_config):
        asked.append((repo, config, split, revision))
        return datasets.Dataset.from_list(ROWS)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked


def test_without_a_source_the_playpen_split_is_read_and_its_revision_kept(hub):
    split = read()
    assert hub[0][:2] == ("colab-potsdam/playpen-data", None) and hub[0][2] <= 15
    assert hub[1] == ("colab-potsdam/playpen-data", "instances", "validation", "c0ffee")
    assert KEY in split.keys
    assert split.sources[0].revision == "c0ffee"


def test_another_split_and_revision_can_be_asked_for(hub):
    read(split="me/data:keys:dev@v2")
    assert [call[:4] for call in hub] == [("me/data", "v2", hub[0][2]), ("me/data", "keys", "dev", "c0ffee")]


def test_files_alone_need_no_hub(hub, tmp_path):
    read(keys=[write_rows(tmp_path / "k.jsonl", ROWS)])
    assert not hub


@pytest.mark.parametrize("text", [":a:b", "a/b:c:d:e", "a/b@", "a/b::c"])
def test_a_split_that_is_written_wrong_is_refused(text):
    with pytest.raises(UsageProblem, match="REPO:CONFIG:SPLIT@REVISION"):
        source.parse_hub_split(text)


@pytest.mark.parametrize("fault", [ConnectionError("no route"), ValueError(""), KeyError("validation")])
def test_a_split_that_cannot_be_read_stops_and_names_the_ways_out(hub, monkeypatch, fault):
    def fail(*args, **kwargs):
        raise fault

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(PairgenError, match=r"(?s)--eval-keys.*--eval-results.*--no-eval-split"):
        read()


def test_a_split_without_rows_or_columns_stops(hub, monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: datasets.Dataset.from_list([]))
    with pytest.raises(PairgenError, match=r"names no instance.*--eval-keys"):
        read()
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: datasets.Dataset.from_list([{"id": 1}]))
    with pytest.raises(PairgenError, match="row 1 does not name an instance"):
        read()


def test_names_of_experiments_that_do_not_meet_are_told():
    split = eval_split(KEY, KEY._replace(experiment="low_en"), InstanceKey("chess", "x", 1))
    lines = unmatched_experiments(split, [("taboo", "0_high_en"), ("taboo", "low_en2"), ("wordle", "x")])
    assert len(lines) == 2 and "taboo" in lines[0] and "low_en (renamed low_en2?)" in lines[0]
    assert "low_en2" in lines[1] and "high_en" not in "".join(lines)
    assert not unmatched_experiments(split, [("taboo", "high_en"), ("taboo", "1_low_en")])
    assert not unmatched_experiments(NO_EVAL_SPLIT, [("taboo", "high_en")])


def test_each_catch_names_the_evaluation_instance():
    net = Net(eval_split(KEY, contents={"known": KEY}))
    net.learn([make_episode(3)])
    assert net.find(KEY._replace(experiment="0_high_en"), "")[:2] == ("eval_key", "taboo/high_en/3")
    assert net.find(KEY._replace(task_id=9), make_episode(3).instance_hash)[:2] == ("eval_content", "taboo/high_en/3")
    assert net.find(KEY._replace(task_id=9), "known")[:2] == ("eval_content", "taboo/high_en/3")
    assert net.find(KEY._replace(task_id=9), "") is None
