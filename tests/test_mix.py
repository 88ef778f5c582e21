"""A pair set and a general preference set become one pair set at a ratio; what is wrong in the general set is told."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pairgen.cli import main
from pairgen.commands.mix_ import command
from pairgen.records import Message
from pipelines import ratio
from pipelines.general import FLAWS, Flawed, convert
from pipelines.mix import MixConfig
from pipelines.pairset import read_drops, read_manifest, read_pairs


def turn(role, content):
    return {"role": role, "content": content}


def general(number, source="flan", **changes):
    """A row in the shape of the Tülu 3 mixture: the prompt as a text, both sides as whole conversations."""
    asks = [turn("user", f"Question {number}?")]
    said = {side: [*asks, turn("assistant", f"{side} answer {number}")] for side in ("chosen", "rejected")}
    return {"id": f"row-{number}", "source": source, "prompt": f"Question {number}?", **said, **changes}


def own(number, prompt=""):
    return {"prompt": prompt or f"Task {number} of {number % 7}.", "chosen": f"GUESS: w{number}", "rejected": "No."}


@pytest.fixture(autouse=True)
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    Path("own.json").write_text(json.dumps([own(i) for i in range(40)]))
    summary("import", "own.json", "--out", "own")


def write(rows, name="general.jsonl"):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def call(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def summary(*arguments):
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_one_to_one_takes_as_many_general_pairs_as_there_are_to_train_on():
    told = summary("mix", "own", "--with", write([general(i) for i in range(100)]), "--out", "mixed")
    before, pairs = read_manifest(Path("own")), read_pairs(Path("mixed"))
    assert (told["own"], told["general_taken"], told["test"]) == (before.train, before.train, before.test)
    mixed_in = [p for p in pairs if p.strategy == "general"]
    assert {p.split for p in mixed_in} == {"train"}, "the test side stays as it was"
    one = min(mixed_in, key=lambda p: p.task_id)
    assert one.prompt == (Message("user", f"Question {one.task_id}?"),)
    assert one.chosen == (Message("assistant", f"chosen answer {one.task_id}"),)
    assert one.experiment == "flan"


def test_the_mixture_loads_and_is_interleaved():
    call("mix", "own", "--with", write([general(i) for i in range(100)]), "--out", "mixed")
    data = datasets.load_dataset("mixed")
    assert data["train"].column_names == ["prompt", "chosen", "rejected"]
    kinds = datasets.load_dataset("mixed", "full")["train"]["strategy"]
    changes = sum(a != b for a, b in pairwise(kinds))
    assert changes > len(kinds) / 4, "own and general pairs come in turn, not one after the other"


def test_the_same_command_gives_the_same_bytes_under_any_hash_seed():
    write([general(i, source=f"s{i % 3}") for i in range(100)])
    for seed in ("0", "7"):
        words = ["mix", "own", "--with", "general.jsonl", "--stratify", "source", "--out", f"mixed{seed}"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-m", "pairgen.cli", *words], check=True, env=environment, capture_output=True)
    for name in ("full/train.parquet", "default/train.parquet", "full/test.parquet", "README.md", "manifest.json"):
        assert Path("mixed0", name).read_bytes() == Path("mixed7", name).read_bytes(), name


FLAWED = {
    "not_a_pair": general(900, chosen=None),
    "other_role": general(901, chosen=[turn("user", "Question 901?"), turn("tool", "x")]),
    "other_prefix": general(902, rejected=[turn("user", "Another?"), turn("assistant", "x")]),
    "other_prompt": general(903, prompt="Nobody asked this"),
    "no_reply": general(904, chosen=[turn("user", "Question 904?"), turn("user", "x")]),
    "no_question": general(905, prompt=None, chosen=[turn("assistant", "x")], rejected=[turn("assistant", "y")]),
    "empty": general(906, chosen=[turn("user", "Question 906?"), turn("assistant", " \n")]),
    "identical": general(907, rejected=[turn("user", "Question 907?"), turn("assistant", "chosen  answer 907")]),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_each_flaw_is_known(flaw):
    with pytest.raises(Flawed) as found:
        convert(FLAWED[flaw])
    assert found.value.flaw == flaw


def test_flaws_are_counted_with_an_example_and_left_out():
    rows = [*FLAWED.values(), *(general(i) for i in range(60)), general(3)]
    told = summary("mix", "own", "--with", write(rows), "--out", "mixed")
    assert {f["flaw"]: (f["count"], f["first"]) for f in told["flaws"]} == {
        flaw: (1, place) for place, flaw in enumerate(FLAWED)
    }
    assert "Nobody asked this" in next(f["example"] for f in told["flaws"] if f["flaw"] == "other_prompt")
    assert (told["read"], told["repeated"]) == (69, 1)
    assert "8 rows" not in Path("mixed/README.md").read_text()
    assert "1 other_prefix" in Path("mixed/README.md").read_text()


def test_a_conversation_of_several_turns_keeps_all_of_it_as_the_prompt():
    talk = [turn("system", "Be brief."), turn("user", "Hi"), turn("assistant", "Hello"), turn("user", "Bye")]
    pair = convert(
        {"prompt": "Hi", "chosen": [*talk, turn("assistant", "a")], "rejected": [*talk, turn("assistant", "b")]}
    )
    assert [m.content for m in pair.prompt] == ["Be brief.", "Hi", "Hello", "Bye"]
    assert (pair.chosen[0].content, pair.rejected[0].content) == ("a", "b")


def test_a_short_general_set_is_told_and_own_pairs_stay():
    result = call("mix", "own", "--with", write([general(i) for i in range(5)]), "--out", "mixed")
    train = read_manifest(Path("own")).train
    assert f"{train} own and {train} general pairs were wanted, there are {train} and 5" in result.output
    assert "The ratio is not reached" in Path("mixed/README.md").read_text()


def test_a_total_shares_out_both_sides_and_lists_what_it_leaves():
    rows = write([general(i) for i in range(100)])
    told = summary("mix", "own", "--with", rows, "--out", "mixed", "--ratio", "1:3", "--total", "20")
    assert (told["own"], told["general_taken"]) == (5, 15)
    gone = [d for d in read_drops(Path("mixed")) if d.stage == "mix"]
    assert len(gone) == read_manifest(Path("own")).train - 5
    assert {d.reason for d in gone} == {"total"}


def test_strata_keep_their_proportions():
    rows = [general(i, source="many" if i % 10 else "few") for i in range(1000)]
    summary("mix", "own", "--with", write(rows), "--out", "mixed", "--ratio", "1:2", "--stratify", "source")
    taken = Counter(p.experiment for p in read_pairs(Path("mixed")) if p.strategy == "general")
    assert taken["few"] == round(taken.total() / 10)


def test_no_prompt_has_more_pairs_than_it_may():
    rows = [{**general(1), "chosen": [turn("user", "Question 1?"), turn("assistant", f"a{i}")]} for i in range(60)]
    Path("own2.json").write_text(json.dumps([{**own(1), "chosen": f"GUESS: w{i}"} for i in range(30)] + [own(2)]))
    summary("import", "own2.json", "--out", "own2")
    told = summary("mix", "own2", "--with", write(rows), "--out", "mixed", "--max-per-prompt", "4", "--ratio", "1:9")
    counts = Counter(p.prompt for p in read_pairs(Path("mixed")) if p.split == "train")
    assert max(counts.values()) == 4
    assert told["over_cap"] == 56
    assert {d.reason for d in read_drops(Path("mixed")) if d.stage == "mix"} == {"max_per_prompt"}


def test_what_the_test_side_asks_is_not_trained_on():
    asked = next(p for p in read_pairs(Path("own")) if p.split == "test").prompt[-1].content
    rows = [{"prompt": asked, "chosen": "x", "rejected": "y"}, *({**own(i), "prompt": f"other {i}"} for i in range(9))]
    told = summary("mix", "own", "--with", write(rows), "--out", "mixed")
    assert told["in_test"] == 1
    sides = {side: {p.prompt for p in read_pairs(Path("mixed")) if p.split == side} for side in ("train", "test")}
    assert not sides["train"] & sides["test"]


@pytest.mark.parametrize("shape", ["general.json", "general.parquet", "folder", "a pair set"])
def test_files_folders_and_pair_sets_can_be_mixed_in(shape):
    rows = [general(i) for i in range(50)]
    if shape == "general.json":
        Path(shape).write_text(json.dumps({"rows": rows}))
    elif shape == "general.parquet":
        pq.write_table(pa.Table.from_pylist(rows), shape)
    elif shape == "folder":
        for part in range(2):
            Path("folder/data").mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows[part::2]), f"folder/data/train-{part}-of-2.parquet")
        pq.write_table(pa.Table.from_pylist([general(999)]), "folder/data/test-0.parquet")
    else:
        Path("theirs.json").write_text(json.dumps([{**own(i), "prompt": f"theirs {i}"} for i in range(50)]))
        summary("import", "theirs.json", "--out", shape)
    told = summary("mix", "own", "--with", shape, "--out", "mixed")
    assert told["general_taken"] == told["own"]
    assert told["read"] == (read_manifest(Path(shape)).train if shape == "a pair set" else 50)


def test_the_card_says_what_was_mixed_and_what_was_checked():
    call("mix", "own", "--with", write([general(i) for i in range(100)]), "--out", "mixed", "--license", "odc-by")
    manifest, card = read_manifest(Path("mixed")), Path("mixed/README.md").read_text()
    assert manifest.mixed is not None
    assert "license: odc-by" in card
    assert f"the general preference set `general.jsonl` (revision `{manifest.mixed.revision}`, license odc-by)" in card
    assert "pairgen mix own --with general.jsonl --ratio 1:1 --license odc-by --seed 42" in card
    assert "**Not checked.**" in card
    assert "general pairs were not checked for evaluation instances" in manifest.evaluation.notes[-1]
    assert manifest.mixed.content == read_manifest(Path("own")).content


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--with", "nowhere.jsonl"], "there is no such file or folder"),
        (["--with", "general.jsonl", "--ratio", "0:1"], "two whole numbers above 0"),
        (["--with", "general.jsonl", "--stratify", "sauce"], "did you mean source"),
        (["--with", "other.jsonl"], "has no column chosen and rejected"),
        (["--with", "torn.jsonl"], "cannot be read"),
        (["--with", "flawed.jsonl"], "no pair that could be taken"),
    ],
)
def test_what_cannot_be_mixed_is_said_with_the_fix_and_leaves_nothing(words, told):
    write([general(i) for i in range(9)])
    write([{"text": "x"}], "other.jsonl")
    write(FLAWED.values(), "flawed.jsonl")
    Path("torn.jsonl").write_text(json.dumps(general(1)) + '\n{"prompt": "x", "cho')
    result = call("mix", "own", *words, "--out", "mixed")
    assert result.exit_code in (1, 2)
    assert told in result.output
    assert not Path("mixed").exists()


def test_the_set_itself_is_never_written_over():
    write([general(1)])
    before = Path("own/manifest.json").read_bytes()
    assert call("mix", "own", "--with", "general.jsonl", "--out", "own", "--overwrite").exit_code == 2
    assert Path("own/manifest.json").read_bytes() == before


def test_every_option_is_a_field_of_the_config():
    options = {p.name for p in command.params if p.param_type_name == "option"}
    assert options - {"general", "out", "overwrite", "as_json"} == {f.name for f in fields(MixConfig)}
    defaults = {p.name: p.default for p in command.params if p.name in {f.name for f in fields(MixConfig)}}
    assert defaults == {f.name: f.default for f in fields(MixConfig)}


rows_of = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8)), max_size=60).map(
    lambda cells: [ratio.Row(i, stratum, f"p{prompt}", f"r{i}") for i, (stratum, prompt) in enumerate(cells)]
)


@given(rows_of, st.integers(0, 60), st.integers(0, 5))
def test_the_sample_has_its_size_and_every_stratum_its_share(rows, count, seed):
    count = min(count, len(rows))
    taken = ratio.chosen(rows, count, seed)
    assert len(taken) == len(set(taken)) == count
    sizes = Counter(row.stratum for row in rows)
    for stratum, got in Counter(row.stratum for row in taken).items():
        assert abs(got - sizes[stratum] * count / len(rows)) < 1


@given(rows_of, st.integers(1, 5), st.integers(0, 5))
def test_a_cap_keeps_as_many_of_each_prompt_as_it_says(rows, most, seed):
    stay = ratio.capped([row.prompt for row in rows], [row.pair for row in rows], most, seed)
    kept = Counter(row.prompt for row, stays in zip(rows, stay, strict=True) if stays)
    assert kept == {prompt: min(most, n) for prompt, n in Counter(row.prompt for row in rows).items()}


@given(st.integers(1, 500), st.integers(0, 500), st.integers(1, 9), st.integers(1, 9), st.integers(0, 300))
def test_shares_never_pass_what_there_is_nor_what_is_wanted(own_pairs, general_pairs, left, right, total):
    got = ratio.shares(own_pairs, general_pairs, ratio.Ratio(left, right), total)
    assert got.own == min(own_pairs, got.wanted_own)
    assert got.general == min(general_pairs, got.wanted_general)
    if total:
        assert got.wanted_own + got.wanted_general == total
    assert abs(got.wanted_general - got.wanted_own * right / left) <= max(1, right / left)
