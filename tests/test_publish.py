"""A dry run shows all and sends nothing; a push is one commit, private unless said otherwise."""

import hashlib
import socket
from types import SimpleNamespace

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


def make_set(out, episodes):
    config = CorruptConfig(strategy=("longer",), no_eval_split=True)
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
        "dropped.parquet", "manifest.json",
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


class Hub:
    """As much of the Hub as a push meets."""

    def __init__(self, monkeypatch, tmp_path, *, exists=False, private=True, files=(), card=""):
        self.private, self.exists = private, exists
        self.files, self.commits = list(files), []
        path = tmp_path / "hub-card.md"
        path.write_text(card)
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *a, **k: str(path))

    def create_repo(self, repo, repo_type, private, exist_ok):
        assert repo_type == "dataset" and exist_ok
        if not self.exists:
            self.exists, self.private = True, private

    def dataset_info(self, repo):
        siblings = [SimpleNamespace(rfilename=name) for name in self.files]
        return SimpleNamespace(private=self.private, sha=f"sha{len(self.commits)}", siblings=siblings)

    def create_commit(self, repo, operations, commit_message, repo_type, parent_commit):
        assert repo_type == "dataset" and parent_commit == f"sha{len(self.commits)}"
        self.commits.append({type(o).__name__[15:] + " " + o.path_in_repo: o for o in operations})
        return SimpleNamespace(oid="abc")


def test_a_push_is_one_commit_to_a_private_data_set(pairs, tmp_path, monkeypatch):
    hub = Hub(monkeypatch, tmp_path)
    plan, receipt = publish.push(pairs, "me/games", public=False)
    assert receipt == ("https://huggingface.co/datasets/me/games", "abc", True)
    assert [set(c) for c in hub.commits] == [{f"Add {f.path}" for f in plan.files}]


def test_a_push_keeps_the_card_on_the_hub_and_clears_stale_tables(pairs, tmp_path, monkeypatch):
    files = ["README.md", "full/train-00001.parquet", "default/test.parquet", "notes.txt"]
    hub = Hub(monkeypatch, tmp_path, exists=True, files=files, card="My own words.")
    publish.push(pairs, "me/games", public=False)
    (commit,) = hub.commits
    assert [name for name in commit if name.startswith("Delete")] == ["Delete full/train-00001.parquet"]
    assert b"My own words." in commit["Add README.md"].path_or_fileobj


def test_nothing_goes_to_a_public_data_set_unless_that_is_said(pairs, tmp_path, monkeypatch):
    hub = Hub(monkeypatch, tmp_path, exists=True, private=False)
    with pytest.raises(UsageProblem, match="--public"):
        publish.push(pairs, "me/games", public=False)
    assert not hub.commits
    assert publish.push(pairs, "me/games", public=True)[1].private is False


def test_what_became_of_it_is_read_back(pairs, tmp_path, monkeypatch):
    Hub(monkeypatch, tmp_path, exists=True, private=True)
    assert publish.push(pairs, "me/games", public=True)[1].private is True


def test_a_push_that_the_hub_refuses_names_the_way_in(pairs, monkeypatch):
    def refuse():
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(create_repo=lambda *a, **k: refuse()))
    with pytest.raises(PairgenError, match="no route to host.*hf auth login"):
        publish.push(pairs, "me/games", public=False)
