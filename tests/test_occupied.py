"""What a push would mix with or replace is told apart from what it leaves alone."""

import pyarrow as pa
import pytest

from pairgen import store
from pairgen.records import TrainRow
from pipelines import occupied, pairset


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        ("README.md", False), (".gitattributes", False), ("LICENSE", False), ("figures/a.png", False),
        ("default/train.parquet", False), ("dropped.parquet", False), ("manifest.json", False),
        ("default/train-00001.parquet", True), ("full/notes.txt", True), ("rows.csv", True),
        ("data/ROWS.JSONL.GZ", True),
        ("games.py", True), (".huggingface.yaml", True), ("dataset_infos.json", True), ("sub/manifest.json", True),
    ],
)  # fmt: skip
def test_data_of_others_is_foreign(path, foreign):
    assert occupied.foreign([path]) == ((path,) if foreign else ())


def test_a_set_without_our_manifest_is_of_other_making():
    assert occupied.of_other_making([".gitattributes", "LICENSE"], None) == ()
    assert occupied.of_other_making(["full/train.parquet", "manifest.json"], {"kind": "pairs"}) == ()
    for manifest in (None, {"kind": "run"}, ["pairs"]):
        (said,) = occupied.of_other_making(["full/train.parquet", "manifest.json"], manifest)
        assert said.startswith("full/train.parquet, manifest.json (")


def test_columns_are_compared_by_name_and_type():
    ours = store.arrow_schema(TrainRow)
    assert occupied.of_other_columns({"default/train.parquet": ours}) == ()
    other = ours.remove(1).append(pa.field("score", pa.int64()))
    (said,) = occupied.of_other_columns({"default/train.parquet": other})
    assert said == "default/train.parquet (other columns: chosen, score)"
    assert occupied.of_other_columns({"default/train.parquet": None})


def test_a_member_of_a_set_is_sent_when_it_is_named(tmp_path, monkeypatch):
    for name in ("default/train.parquet", "manifest.json", "dropped.parquet", "dpo.yaml", "mine.txt", ".lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(pairset, "OWN", pairset.OWN | {"dpo.yaml"})
    assert pairset.members(tmp_path) == ["default/train.parquet", "dpo.yaml", "dropped.parquet", "manifest.json"]
    assert occupied.is_own("dpo.yaml")
