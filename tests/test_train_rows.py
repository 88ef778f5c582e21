"""What TRL would silently do to a row is named, with the option that mends it."""

import pytest
from factories import make_pair
from tiny import tiny_tokenizer

from pairgen.errors import PairgenError
from pairgen.records import Message
from pipelines.train_rows import REASONS, check_pairs, refusal, refuse


def pair(prompt="Guess it.", chosen="GUESS: apple", rejected="GUESS: apple, I think", **fields):
    roles = {"prompt": "user", "chosen": "assistant", "rejected": "assistant"}
    said = {"prompt": prompt, "chosen": chosen, "rejected": rejected}
    sides = {name: (Message(roles[name], text),) if isinstance(text, str) else text for name, text in said.items()}
    return make_pair(**sides, **fields)


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.mark.parametrize(
    ("unfit", "reason"),
    [
        (pair(), ""),
        (pair(rejected="GUESS:  apple"), "identical"),
        (pair(rejected=" \n"), "empty"),
        (pair(prompt=()), "empty"),
        (pair(rejected="GUESS: apple<|im_end|>"), "special_token"),
        (pair(prompt=(Message("assistant", "hello"),)), "not_a_reply"),
        (pair(chosen=(Message("user", "GUESS: apple"),)), "not_a_reply"),
    ],
)
def test_a_row_that_teaches_nothing_or_another_thing_has_its_reason(tokenizer, unfit, reason):
    assert check_pairs([unfit], tokenizer).reasons == (reason,)


def test_a_row_is_over_the_length_exactly_where_trl_would_cut_it(tokenizer):
    longest = check_pairs([pair()], tokenizer).longest
    assert check_pairs([pair()], tokenizer, longest).reasons == ("",)
    assert check_pairs([pair()], tokenizer, longest - 1).reasons == ("over_max_length",)
    assert check_pairs([pair()], tokenizer, longest - 1).longest == longest


def test_a_prompt_that_reads_otherwise_before_a_reply_is_refused_unless_allowed(tokenizer):
    assert check_pairs([pair()], tokenizer, enable_thinking=False).reasons == ("broken_prefix",)
    assert check_pairs([pair()], tokenizer, broken_prefix=True, enable_thinking=False).reasons == ("",)


def test_without_a_rejected_side_sides_are_not_compared(tokenizer):
    one = pair(rejected=())
    assert check_pairs([one], tokenizer, chosen_only=True).reasons == ("",)
    assert check_pairs([one, pair(chosen=" ", rejected=())], tokenizer, chosen_only=True).unfit == {"empty": 1}


def test_a_row_that_the_template_refuses_does_not_take_others_with_it():
    picky = tiny_tokenizer("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
                           "{% endif %}{{ m.content }}{% endfor %}")  # fmt: skip
    bad = pair(prompt=(Message("system", "Be short."), Message("user", "Guess it.")))
    assert check_pairs([pair(), bad, pair()], picky).reasons == ("", "template_refuses", "")


def test_the_refusal_counts_by_reason_and_names_the_fix():
    text = refusal({"over_max_length": 2, "identical": 1}, 10, 3000)
    assert text.startswith("3 of 10 rows")
    assert "Give --max-length 3000, or --drop-unfit" in text
    with pytest.raises(PairgenError, match="2 over_max_length"):
        refuse({"over_max_length": 2}, 10, 3000, drop=False)
    refuse({"over_max_length": 2}, 10, 3000, drop=True)
    refuse({}, 10, 0, drop=False)


def test_nothing_is_trained_where_no_row_is_left():
    with pytest.raises(PairgenError, match="No row is left"):
        refuse({"identical": 3}, 3, 0, drop=True)
    with pytest.raises(PairgenError, match="There is no row"):
        refuse({}, 0, 0, drop=True)


def test_every_reason_says_what_it_means():
    assert all(meaning and "{" not in meaning for meaning, _ in REASONS.values())
