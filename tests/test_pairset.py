"""A pair set is written whole or not at all, the same input gives the same bytes, and everybody can load it."""

import json

import datasets
import pyarrow.parquet as pq
import pytest
from factories import STRATEGIES, eval_split, make_episodes, write_run

import pairgen
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import InstanceKey, Pair, TrainRow, from_dict, hub_features, to_dict
from pipelines import card, pairset
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.manifest import Manifest, content_of, make_manifest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


def write(out, episodes=None, evaluation=NO_EVAL_SPLIT, overwrite=False, **fields):
    episodes = make_episodes() if episodes is None else episodes
    config = CorruptConfig(strategy=("longer", "picky"), **fields)
    built = build(episodes, config, choose(config.strategy, "", STRATEGIES), STRATEGIES, evaluation)
    used = [pairset.describe_run(out.parent / "run", len(episodes))]
    manifest = make_manifest(built, config, evaluation, [], episodes, used, pairset.versions(episodes))
    pairset.write_pairset(out, built.train, built.test, built.drops, manifest, overwrite=overwrite)
    return built


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_folder_holds_what_it_should_and_nothing_else(tmp_path):
    write(tmp_path / "pairs")
    assert set(files(tmp_path / "pairs")) == {
        "README.md", "manifest.json", "dropped.parquet", "dpo.yaml", "default/train.parquet", "default/test.parquet",
        "full/train.parquet", "full/test.parquet",
    }  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["pairs"]


def test_the_same_input_gives_the_same_bytes_and_another_seed_other_rows(tmp_path):
    episodes = make_episodes()
    write(tmp_path / "a", episodes)
    write(tmp_path / "b", episodes[::-1])
    write(tmp_path / "c", episodes, seed=7)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a")["default/train.parquet"] != files(tmp_path / "c")["default/train.parquet"]


@pytest.mark.parametrize(("config", "cls"), [("default", TrainRow), ("full", Pair)])
def test_the_folder_loads_as_a_data_set(tmp_path, config, cls):
    built = write(tmp_path / "pairs")
    loaded = datasets.load_dataset(str(tmp_path / "pairs"), config)
    assert {name: len(rows) for name, rows in loaded.items()} == {"train": len(built.train), "test": len(built.test)}
    assert loaded["train"].features == loaded["test"].features == hub_features(cls)
    both = [("train", p) for p in built.train] + [("test", p) for p in built.test]
    for (_, pair), row in zip(both, [*loaded["train"], *loaded["test"]], strict=True):
        expected = TrainRow(pair.prompt, pair.chosen, pair.rejected) if cls is TrainRow else pair
        assert from_dict(cls, row) == expected


def test_without_a_name_the_configuration_is_the_trainers(tmp_path):
    write(tmp_path / "pairs")
    loaded = datasets.load_dataset(str(tmp_path / "pairs"))
    assert loaded["train"].column_names == ["prompt", "chosen", "rejected"]
    assert set(loaded) == {"train", "test"}


def test_load_pairs_gives_both_configurations(tmp_path):
    write(tmp_path / "pairs")
    assert pairgen.load_pairs(tmp_path / "pairs")["train"].column_names == ["prompt", "chosen", "rejected"]
    assert "pair_id" in pairgen.load_pairs(tmp_path / "pairs", "full")["test"].column_names
    for folder, config in ((tmp_path, "default"), (tmp_path / "pairs", "other")):
        with pytest.raises(PairgenError, match="holds no pair set"):
            pairgen.load_pairs(folder, config)
        with pytest.raises(PairgenError, match="holds no pair set"):
            pairgen.load_frame(folder, config)


def test_load_frame_gives_every_pair_train_first(tmp_path):
    built = write(tmp_path / "pairs[1]")
    frame = pairgen.load_frame(tmp_path / "pairs[1]")
    assert frame["split"].to_list() == ["train"] * len(built.train) + ["test"] * len(built.test)
    assert [from_dict(Pair, row) for row in frame.to_dicts()] == [*built.train, *built.test]
    assert pairgen.load_frame(tmp_path / "pairs[1]", "default").columns == ["prompt", "chosen", "rejected"]


def test_old_releases_of_datasets_can_read_the_features(tmp_path):
    write(tmp_path / "pairs")
    metadata = pq.read_schema(tmp_path / "pairs/default/train.parquet").metadata[b"huggingface"]
    assert b'"List"' not in metadata and b"large_string" not in metadata
    value = {"dtype": "string", "_type": "Value"}
    assert json.loads(metadata)["info"]["features"]["prompt"] == [{"role": value, "content": value}]


def test_what_was_written_is_read_back(tmp_path):
    built = write(tmp_path / "pairs")
    assert pairset.read_pairs(tmp_path / "pairs") == [*built.train, *built.test]
    assert pairset.read_drops(tmp_path / "pairs") == built.drops
    manifest = pairset.read_manifest(tmp_path / "pairs")
    assert from_dict(Manifest, to_dict(manifest)) == manifest
    assert (manifest.pairs, manifest.funnel) == (len(built.train) + len(built.test), built.funnel)


def test_the_manifest_says_where_the_rows_come_from(tmp_path):
    write_run(tmp_path / "run", [])
    evaluation = eval_split(InstanceKey("taboo", "high_en", 3))
    built = write(tmp_path / "pairs", evaluation=evaluation, eval_keys=("eval.jsonl",))
    m = pairset.read_manifest(tmp_path / "pairs")
    assert m.command == ("pairgen corrupt run --strategy longer --strategy picky --seed 42 --eval-keys eval.jsonl")
    assert (m.models, m.versions.clemcore, m.runs[0].model) == (("tiny",), ("3.7.2",), "tiny")
    assert [(i.game, i.experiment, i.task_id) for i in m.evaluation.removed] == [("taboo", "high_en", 3)]
    assert m.evaluation.removed_pairs == sum(d.stage == "decontaminate" for d in built.drops) > 0
    assert sum(c.train for c in m.table) == len(built.train) and sum(c.test for c in m.table) == len(built.test)
    assert {(v.side, v.verdict, v.pairs) for v in m.verdicts} == {
        (side, "unverifiable: not verified", m.pairs) for side in ("chosen", "rejected")
    }
    text = (tmp_path / "pairs/manifest.json").read_text()
    assert str(tmp_path) not in text and "/models/" not in text


def test_the_content_hash_is_that_of_the_rows(tmp_path):
    for name, fields in (("a", {}), ("b", {"license": "mit"}), ("c", {"per_player": 1})):
        write(tmp_path / name, **fields)
    a, b, c = (pairset.read_manifest(tmp_path / name).content for name in "abc")
    assert a == b != c
    pairs = pairset.read_pairs(tmp_path / "a")
    assert content_of(pairs) == content_of(pairs[::-1]) == a


def test_one_instance_makes_no_test_side(tmp_path):
    write(tmp_path / "pairs", make_episodes(["taboo"], tasks=1))
    assert not list((tmp_path / "pairs").rglob("test.parquet"))
    assert set(datasets.load_dataset(str(tmp_path / "pairs"), "full")) == {"train"}
    assert set(pairgen.load_pairs(tmp_path / "pairs")) == {"train"}


def test_a_set_without_pairs_says_why_and_is_no_data_set(tmp_path):
    built = write(tmp_path / "pairs", make_episodes(outcome="lose"))
    assert set(files(tmp_path / "pairs")) == {"manifest.json", "dropped.parquet"}
    assert pairset.read_manifest(tmp_path / "pairs").pairs == 0
    assert len(pairset.read_drops(tmp_path / "pairs")) == len(built.drops) == 120


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    write(tmp_path / "pairs")
    before = files(tmp_path / "pairs")
    with pytest.raises(UsageProblem, match="--overwrite"):
        write(tmp_path / "pairs", seed=7)
    assert files(tmp_path / "pairs") == before
    write(tmp_path / "pairs", seed=7, overwrite=True)
    assert files(tmp_path / "pairs") != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(UsageProblem, match="not written by pairgen"):
        write(tmp_path / "mine", overwrite=True)


def test_a_run_is_never_replaced_by_pairs(tmp_path):
    run = write_run(tmp_path / "run", make_episodes(tasks=1))
    with pytest.raises(UsageProblem, match="is a run"):
        write(run, overwrite=True)
    assert (run / "episodes.jsonl").exists()


def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch):
    write(tmp_path / "pairs")
    before = files(tmp_path / "pairs")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(card, "render", fail)
    for out in ("pairs", "new"):
        with pytest.raises(OSError, match="disk full"):
            write(tmp_path / out, seed=7, overwrite=out == "pairs")
    assert files(tmp_path / "pairs") == before
    assert [p.name for p in tmp_path.iterdir()] == ["pairs"]


def test_what_a_killed_write_left_is_cleared_away(tmp_path):
    left = tmp_path / ".pairs.tmp/default"
    left.mkdir(parents=True)
    (left / "junk.parquet").write_text("junk")
    write(tmp_path / "pairs")
    assert "default/junk.parquet" not in files(tmp_path / "pairs")
    assert [p.name for p in tmp_path.iterdir()] == ["pairs"]


def test_a_persons_words_on_the_card_outlive_an_overwrite(tmp_path):
    write(tmp_path / "pairs")
    readme = tmp_path / "pairs/README.md"
    readme.write_text(readme.read_text() + "\nWords of my own.\n")
    write(tmp_path / "pairs", seed=7, overwrite=True)
    assert "Words of my own." in readme.read_text() and "--seed 7" in readme.read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no pair set.*pairgen corrupt"),
        ('{"kind": "run"}', "no pair set"),
        ("{torn", "cannot be read"),
        ('{"kind": "pairs"}', "cannot be read"),
        ("[]", "cannot be read"),
    ],
)
def test_a_folder_that_is_no_pair_set_is_refused_with_the_way_to_one(tmp_path, content, says):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(PairgenError, match=says):
        pairset.read_manifest(tmp_path)


def test_a_run_is_told_from_a_pair_set(tmp_path):
    with pytest.raises(PairgenError, match="is a run.*pairgen corrupt"):
        pairset.read_manifest(write_run(tmp_path / "run", make_episodes(tasks=1)))


def test_the_rows_are_in_an_order_that_mixes_the_games(tmp_path):
    built = write(tmp_path / "pairs")
    assert len({p.game for p in built.train[:10]}) == 2
