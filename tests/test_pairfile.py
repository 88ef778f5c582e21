"""Pair files of others become pairs; what they do not say stays empty, and what is no pair is an error with its row."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import make_pair

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import to_dict
from pipelines.adopt import adopt
from pipelines.audit import audit
from pipelines.dedup import Limits, repeats
from pipelines.pairfile import read_pairs
from pipelines.slim import frame_of, slim
from pipelines.split import shared, sides

TALK = [
    {"role": "user", "content": "Guess."},
    {"role": "assistant", "content": "A"},
    {"role": "user", "content": "No."},
]


def row(prompt="Guess.", chosen="B", rejected="B, I think.", **more):
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected, **more}


def write(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    else:
        path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet"])
def test_texts_and_message_lists_become_pairs(tmp_path, kind):
    said = [{"role": "assistant", "content": "B"}]
    pairs = read_pairs(
        write(tmp_path / f"pairs.{kind}", [row(TALK, said, [{**said[0], "content": "C"}], game="wordle")])
    )
    assert [[m.content for m in side] for side in (pairs[0].prompt, pairs[0].chosen, pairs[0].rejected)] == [
        ["Guess.", "A", "No."], ["B"], ["C"],
    ]  # fmt: skip
    assert (pairs[0].game, pairs[0].strategy, pairs[0].main_score, pairs[0].move_index) == ("wordle", "", None, 0)
    assert read_pairs(write(tmp_path / f"texts.{kind}", [row()]))[0].chosen[0].role == "assistant"


def test_own_pairs_come_back_as_they_were(tmp_path):
    pairs = [make_pair(t) for t in range(4)]
    assert read_pairs(write(tmp_path / "own.jsonl", [to_dict(p) for p in pairs])) == pairs


def test_a_prompt_that_both_sides_repeat_is_taken_from_them(tmp_path):
    full = [[*TALK, {"role": "assistant", "content": text}] for text in ("B", "C")]
    pair = read_pairs(write(tmp_path / "p.json", [row(TALK, *full)]))[0]
    assert [m.content for m in (*pair.chosen, *pair.rejected)] == ["B", "C"]


def test_a_list_within_an_object_is_read(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"version": 1, "pairs": [row()]}))
    assert len(read_pairs(path)) == 1


def test_pairs_without_an_instance_share_one_where_they_share_a_first_message(tmp_path):
    rows = [row("a"), row("b"), row("a", chosen="C"), row([{"role": "user", "content": "a"}, *TALK])]
    tasks = [p.task_id for p in read_pairs(write(tmp_path / "p.json", rows))]
    assert tasks[0] == tasks[2] == tasks[3] != tasks[1]


def test_every_pair_has_an_id_of_its_own_and_repeats_are_told_apart(tmp_path):
    pairs = read_pairs(write(tmp_path / "p.json", [row(), row(), row(pair_id="x"), row("b", pair_id="x")]))
    assert len({p.pair_id for p in pairs}) == 4 and pairs[2].pair_id == "x"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.json", '{"a": 1}', "no list of rows"),
        ("p.json", "[", "cannot be read"),
        ("p.json", "[]", "holds no pair"),
        ("p.json", '[{"prompt": "a", "chosen": "b"}]', "row 1 is no pair"),
        ("p.jsonl", '{"prompt": "a", "chosen": "b", "rejected": [{"role": "x"}]}', "row 1 is no pair"),
        ("p.jsonl", '{"prompt": "a", "chosen": null, "rejected": "c"}', "row 1 is no pair"),
        ("p.jsonl", "3", "row 1 is no pair"),
    ],
)
def test_what_is_no_pair_file_says_why(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(PairgenError, match=said):
        read_pairs(tmp_path / name)


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(UsageProblem, match=r"\.jsonl"):
        read_pairs(tmp_path / "pairs.xml")


def test_the_flaws_of_a_published_set_are_found(tmp_path):
    fillers = ["\nThis keeps to the rules.", " (as was said before)", "\nNote: no word was forbidden.", "\nSound."]
    rows = [
        row(f"Task {i} of {i % 7}.", f"GUESS: word{i}.", f"GUESS: word{i}.{fillers[i % len(fillers)]}")
        for i in range(200)
    ]
    repeated = [{**r, "rejected": r["chosen"] + fillers[(i + 1) % len(fillers)]} for i, r in enumerate(rows[:20])]
    pairs = read_pairs(write(tmp_path / "p.json", [*rows, *rows[:5], *repeated]))
    frame = frame_of(pairs)
    found = repeats(slim(frame), Limits(per_completion=0, near=0))
    assert Counter(found["reason"]) == {"duplicate": 5, "repeated_chosen": 20}
    divided = sides(slim(frame), 0.1, 42)
    assert not shared(divided).height
    rules = {s.rule: s for s in audit(divided, frame)}
    assert rules["longer"].test == rules["ending"].test == 1 and len(rules["ending"].found) == len(fillers)


def test_pairs_whose_sides_are_equal_or_empty_are_left_out_and_counted(tmp_path):
    rows = [("a", "b"), ("a", " a\n"), ("a", ""), ("c", "d")]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([{"prompt": f"p{i}", "chosen": c, "rejected": r} for i, (c, r) in enumerate(rows)]))
    made = adopt(path, tmp_path / "out").manifest
    assert made.pairs == 2
    assert {(d.reason, d.count) for d in made.funnel[0].dropped} == {("identical", 1), ("empty", 1)}


def test_a_file_of_nothing_but_equal_sides_is_refused(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([{"prompt": "p", "chosen": "a", "rejected": "a"}]))
    with pytest.raises(PairgenError, match="equal or empty"):
        adopt(path, tmp_path / "out")
