"""A dry run shows all and sends nothing; what is sent is read from disk."""

import hashlib
import socket

import datasets
import huggingface_hub
import pytest
from factories import STRATEGIES, make_episodes, write_run

from pairgen.errors import PairgenError, UsageProblem
from pipelines import pairset, publish
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.manifest import make_manifest


@pytest.fixture
def pairs(tmp_path):
    return make_set(tmp_path / "pairs", make_episodes())


def make_set(out, episodes, strategies=("longer",)):
    config = CorruptConfig(strategy=strategies, no_eval_split=True)
    built = build(episodes, config, choose(config.strategy, "", STRATEGIES), STRATEGIES, NO_EVAL_SPLIT)
    manifest = make_manifest(built, config, NO_EVAL_SPLIT, [], episodes, [], pairset.versions(episodes))
    pairset.write_pairset(out, built.train, built.test, built.drops, manifest)
    return out


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(huggingface_hub, "HfApi", refuse)
    monkeypatch.delenv("HF_TOKEN", raising=False)


def test_a_plan_names_every_file_with_its_size_and_hash(pairs, no_network):
    plan = publish.plan_push(pairs, "me/games", public=False)
    summary = publish.as_summary(plan)
    assert [f["path"] for f in summary["files"]] == [
        "README.md", "default/train.parquet", "default/test.parquet", "full/train.parquet", "full/test.parquet",
        "dpo.yaml", "dropped.parquet", "manifest.json",
    ]  # fmt: skip
    for file in summary["files"][1:]:
        content = (pairs / file["path"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert summary["visibility"] == "private"
    assert publish.as_summary(publish.plan_push(pairs, "me/games", public=True))["visibility"] == "public"


def test_the_copy_loads_as_the_data_set_would(pairs, tmp_path, no_network):
    out = tmp_path / "copy"
    publish.write_copy(publish.plan_push(pairs, "me/games", public=False), out, overwrite=False)
    for config, column in (("default", "chosen"), ("full", "pair_id")):
        loaded = datasets.load_dataset(str(out), config, cache_dir=str(tmp_path / "cache"))
        assert set(loaded) == {"train", "test"} and column in loaded["train"].column_names
    assert 'load_dataset("me/games")' in (out / "README.md").read_text()
    with pytest.raises(UsageProblem, match="--overwrite"):
        publish.write_copy(publish.plan_push(pairs, "me/games", public=False), out, overwrite=False)


@pytest.mark.parametrize(
    ("repo", "says"),
    [
        ("games", "write it as USER/games"),
        ("", "USER/NAME"),
        ("me/games/v2", "no name that the Hub takes"),
        ("me/ga mes", "no name"),
        ("me/-games", "no name"),
        ("me/ga--mes", "no name"),
        ("me/", "no name"),
        ("https://huggingface.co/me/games", "no name"),
    ],
)
def test_a_name_that_the_hub_does_not_take_is_refused(pairs, repo, says):
    with pytest.raises(UsageProblem, match=says):
        publish.plan_push(pairs, repo, public=False)


def test_what_is_no_pair_set_is_refused(tmp_path):
    run = write_run(tmp_path / "run", make_episodes(tasks=1))
    with pytest.raises(PairgenError, match="is a run"):
        publish.plan_push(run, "me/games", public=False)
    with pytest.raises(PairgenError, match="holds no pairs"):
        publish.plan_push(make_set(tmp_path / "none", make_episodes(outcome="lose")), "me/games", public=False)


def test_a_set_that_lost_a_file_is_refused(pairs):
    (pairs / "full/test.parquet").unlink()
    with pytest.raises(PairgenError, match=r"full/test\.parquet cannot be read"):
        publish.plan_push(pairs, "me/games", public=False)


@pytest.mark.parametrize("side", ["train", "test"])
def test_a_table_of_the_trainers_that_is_not_the_full_one_is_refused_before_anything_is_sent(pairs, no_network, side):
    other = {"train": "test", "test": "train"}[side]
    (pairs / "default" / f"{side}.parquet").write_bytes((pairs / "default" / f"{other}.parquet").read_bytes())
    with pytest.raises(PairgenError, match=f"default/{side}.parquet is not as pairgen wrote it"):
        publish.plan_push(pairs, "me/games", public=False)
