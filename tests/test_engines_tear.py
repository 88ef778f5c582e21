"""A text is cut only where the parts have the ids of the whole; any other tokenizer is left alone."""

import pytest

from pairgen.engines import tear
from pairgen.engines.tear import tearable

pytest.importorskip("transformers")
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

WORDS = {w: i for i, w in enumerate(["<unk>", "▁a", "▁b", "a", "b", "▁"])}
TEMPLATE = "{% for m in messages %}<|turn|>{{ m.role }}{{ m.content }}<|done|>{% endfor %}"


def token(content, **flags):
    return AddedToken(content, special=True, normalized=flags.pop("normalized", False), **flags)


def tokenizer(*added, of=PreTrainedTokenizerFast, **parts):
    """A tokenizer of few words and the two marks of its template, with the given parts put in."""
    backend = Tokenizer(parts.pop("model", models.BPE(WORDS, [("▁", "a"), ("▁", "b")], unk_token="<unk>")))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    for name, part in parts.items():
        setattr(backend, name, part)
    for one in added or (token("<|turn|>"), token("<|done|>")):  # one by one: a token can be added again
        backend.add_tokens([one])
    return of(tokenizer_object=backend, chat_template=TEMPLATE)


def test_the_marks_are_the_special_tokens_that_the_template_writes():
    assert tearable(tokenizer()) == ("<|turn|>", "<|done|>")
    assert tearable(tokenizer(token("<|turn|>"), token("<|other|>"))) == ("<|turn|>",)
    assert tearable(tokenizer(token("<|turn|>", rstrip=True))) == ("<|turn|>",)


@pytest.mark.parametrize(
    "added",
    [
        [token("<|turn|>", lstrip=True)],
        [token("<|turn|>", single_word=True)],
        [token("<|turn|>"), token("<|turn|>user")],
        [token("<|turn|>"), token("|turn|")],
        [token("<|turn|>"), token(" <|")],
        [token("<|turn|>"), token(">user")],
        [token("m.role")],
        [AddedToken("|>{{ m.role }}{{ m.content }}<|", normalized=False)],
    ],
    ids=["takes what is before it", "a word alone", "part of another", "has another", "begins in another",
         "ends in another", "like a word", "meets itself"],
)  # fmt: skip
def test_a_token_that_is_not_found_everywhere_or_changes_what_is_before_it_is_no_mark(added):
    assert tearable(tokenizer(*added)) == ()


def test_one_bad_mark_does_not_spoil_the_others():
    assert tearable(tokenizer(token("<|turn|>"), token("<|done|>", lstrip=True))) == ("<|turn|>",)


SPACED = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])


def test_a_token_that_is_found_after_normalizing_is_no_mark():
    assert tearable(tokenizer(normalizer=SPACED)) == ("<|turn|>", "<|done|>")
    assert tearable(tokenizer(token("<|turn|>", normalized=True), normalizer=SPACED)) == ()


class Own(PreTrainedTokenizerFast):
    """A model's own code, which may do anything to a text."""

    def _encode_plus(self, text, **kwargs):
        return super()._encode_plus(text.strip(), **kwargs)


def with_own_step():
    made = tokenizer()
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(object())
    return made


@pytest.mark.parametrize(
    "other",
    [
        lambda: tokenizer(of=Own),
        lambda: tokenizer(model=models.BPE(WORDS, [("▁", "a"), ("▁", "b")], unk_token="<unk>", dropout=0.5)),
        with_own_step,
        lambda: tokenizer(post_processor=processors.TemplateProcessing("$A $A")),
        lambda: tokenizer(of=lambda **given: PreTrainedTokenizerFast(split_special_tokens=True, **given)),
        lambda: object(),
    ],
    ids=["own code", "random", "own step", "said twice", "special tokens as text", "none of these"],
)
def test_a_tokenizer_that_is_not_known_is_left_alone(other):
    assert tearable(other()) == ()


def test_a_tokenizer_in_python_is_left_alone():
    slow = ByT5Tokenizer()
    slow.chat_template = "{{ messages[0].content }}</s>"
    assert tearable(slow) == ()


def test_what_looks_safe_is_tried_all_the_same(monkeypatch):
    monkeypatch.setattr(tear, "PLAIN", tear.PLAIN | {__name__})
    assert tearable(tokenizer()) == ("<|turn|>", "<|done|>")
    assert tearable(tokenizer(of=Own)) == ()
