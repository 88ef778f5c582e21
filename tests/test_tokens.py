"""What the trainer sees of a pair, in tokens; and what must not reach it."""

import dataclasses
from types import SimpleNamespace

import pytest
from factories import make_pair

from pairgen.errors import PairgenError
from pairgen.records import Message
from pipelines.slim import frame_of, slim
from pipelines.tokens import check_tokens, load_tokenizer, special_tokens


class Words:
    """A tokenizer with a token a word, whose template opens each turn with <role> and closes it with <end>."""

    all_special_tokens = ("<end>",)
    added_tokens_decoder = {7: SimpleNamespace(special=False, __str__=lambda: "tool"), 8: "<pad>"}  # noqa: RUF012

    def __init__(self, thinks=False):
        self.known, self.thinks = {}, thinks

    def apply_chat_template(self, conversation, tokenize, add_generation_prompt=False):
        assert not tokenize
        turns = [f"<{m['role']}> {m['content'].strip()} <end>" for m in conversation]
        return " ".join([*turns, *(["<assistant>" + " <think>" * self.thinks] if add_generation_prompt else [])])

    def __call__(self, text, add_special_tokens):
        assert not add_special_tokens
        return {"input_ids": [[self.known.setdefault(w, len(self.known)) for w in t.split()] for t in text]}


def pair(prompt="Guess it .", chosen="GUESS: apple", rejected="GUESS: apple , I think", **fields):
    sides = {"chosen": (Message("assistant", chosen),), "rejected": (Message("assistant", rejected),)}
    return make_pair(prompt=(Message("user", prompt),), **sides, **fields)


def check(*pairs, tokenizer=None, **options):
    frame = frame_of(pairs)
    return check_tokens(slim(frame), frame, tokenizer or Words(), **options)


def reasons(*pairs, **options):
    return check(*pairs, **options).decided.select("row", "reason").rows()


def test_lengths_are_those_of_the_prompt_and_of_what_follows_it():
    made = check(pair(), pair("Guess ."))
    assert made.rows.select("prompt_tokens", "chosen_tokens", "rejected_tokens").rows() == [(6, 3, 6), (5, 3, 6)]
    assert (made.needed_length, made.broken_prefix, made.decided.height) == (12, 0, 0)


def test_nothing_is_cut_at_the_length_that_is_said_to_be_needed():
    pairs = [pair(), pair("Guess . " * 9)]
    needed = check(*pairs).needed_length
    assert not reasons(*pairs, max_length=needed)
    assert reasons(*pairs, max_length=needed - 1) == [(1, "over_max_length")]
    assert check(*pairs, max_length=5).needed_length == needed


@pytest.mark.parametrize("field", ["prompt", "chosen", "rejected"])
def test_a_special_token_in_any_text_is_found(field):
    assert reasons(pair(), pair(**{field: "GUESS: <end> now"})) == [(1, "special_token")]


def test_sides_that_are_one_to_the_tokenizer_are_found():
    assert reasons(pair(), pair(rejected="GUESS:  apple\n")) == [(1, "same_tokens")]


def test_a_template_that_renders_the_prompt_otherwise_is_told_and_counted_from_where_they_part():
    made = check(pair(), pair("Guess ."), tokenizer=Words(thinks=True))
    assert made.broken_prefix == 2 and not made.decided.height
    assert made.rows["prompt_tokens"].to_list() == [6, 5]


def test_no_tokens_of_the_vocabulary_count_as_special():
    pattern = special_tokens(Words())
    assert pattern.search("x <pad> y") and pattern.search("<end>") and not pattern.search("a tool")
    empty = SimpleNamespace(all_special_tokens=[], added_tokens_decoder={})
    assert not special_tokens(empty).search("anything")


def test_counts_are_made_in_the_order_of_the_rows():
    pairs = [dataclasses.replace(pair("word " * n), pair_id=f"p{n}") for n in range(1, 600)]
    assert check(*pairs).rows["prompt_tokens"].to_list() == [n + 3 for n in range(1, 600)]


@pytest.mark.model
def test_a_real_tokenizer_is_loaded_and_what_is_none_says_so(smollm2, tmp_path):
    made = check(pair(), tokenizer=load_tokenizer(str(smollm2)))
    assert made.needed_length > 8 and not made.broken_prefix and not made.decided.height
    with pytest.raises(PairgenError, match="cannot be loaded"):
        load_tokenizer(str(tmp_path))
