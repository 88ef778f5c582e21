"""Where a text may be cut so that its parts, encoded alone, give the ids of the whole: the beginnings of some special
tokens of a tokenizer of the `tokenizers` library, which takes such tokens out before anything else sees the text.

What is not known to be safe is not cut: a tokenizer without a safe special token is left alone.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Sequence
from typing import Any

# whose encoding is the library's own: all else, such as a model's own code, may do anything to a text
PLAIN = {
    "transformers.tokenization_utils_base", "transformers.tokenization_utils_fast",
    "transformers.tokenization_utils_tokenizers", "transformers.models.gpt2.tokenization_gpt2_fast",
}  # fmt: skip
METHODS = ("__call__", "_call_one", "_encode_plus", "_batch_encode_plus", "apply_chat_template")
# each works on one stretch between special tokens at a time and looks at no other. Metaspace alone asks where a stretch
# lies, whether at the text's beginning: after a cut a stretch still follows its special token, so it does not
STEPS = {
    "BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend",
    "Replace", "Strip", "StripAccents", "BertPreTokenizer", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace",
    "Punctuation", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit",
}  # fmt: skip
# add no ids where no special tokens are asked for
ENDINGS = {"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}
MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}
FIRST = set(string.punctuation) - {"_"}
LEFT = ("", "a", "Ab  ", " \n", "\t", "É1", "e\u0301", "你", "▁", "Σ", "<")
RIGHT = ("", "b", " b", "\n", "  ", "É", "\u0338", "好", "▁a", ">")


def tearable(tokenizer: Any) -> tuple[str, ...]:
    """The special tokens at whose beginning a text may be cut, out of those that the chat template writes."""
    try:
        if not _is_plain(tokenizer):
            return ()
        marks = tuple(_marks(tokenizer))
        return tuple(m for m in marks if _holds(tokenizer, m, marks))
    except Exception:  # a tokenizer that cannot be looked into is one that is not known
        return ()


def _is_plain(tokenizer: Any) -> bool:
    """Is every step of its encoding one that is known to see no further than from special token to special token?"""
    backend, kind = tokenizer.backend_tokenizer, type(tokenizer)
    if any(getattr(kind, m).__module__ not in PLAIN for m in METHODS if hasattr(kind, m)):
        return False
    if type(backend).__module__ != "tokenizers" or getattr(tokenizer, "split_special_tokens", False):
        return False
    steps = {s["type"] for part in (backend.normalizer, backend.pre_tokenizer) for s in _steps(part)}
    endings = list(_steps(backend.post_processor))
    once = all(sum("Sequence" in part for part in e.get("single", ())) == 1 for e in endings if "single" in e)
    dropout = getattr(backend.model, "dropout", None)
    known = steps <= STEPS and {e["type"] for e in endings} <= ENDINGS and type(backend.model).__name__ in MODELS
    return known and once and not dropout and not backend.encode_special_tokens


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """A pipeline's steps as they are written down; raises for one that is made of Python code."""
    if part is not None:
        yield from _flat(json.loads(part.__getstate__()))


def _flat(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if step["type"] != "Sequence":
        yield step
    for key in ("normalizers", "pretokenizers", "processors"):
        for inner in step.get(key, ()):
            yield from _flat(inner)


def _marks(tokenizer: Any) -> Iterator[str]:
    """Those tokens that are found wherever they are written, and that leave the text to their left as it is."""
    added = list(tokenizer.backend_tokenizer.get_added_tokens_decoder().values())
    written, ends = str(tokenizer.chat_template), (tokenizer.bos_token, tokenizer.eos_token)
    raw = tokenizer.backend_tokenizer.normalizer is None
    for token in added:
        mark = token.content
        if (
            (mark in written or mark in ends)
            and (raw or not token.normalized)
            and not token.lstrip
            and not token.single_word
            and mark[0] in FIRST  # also ends the whitespace and the word of a token before it
            and not _meet(mark, mark)
            and not any(
                mark in t.content or t.content in mark or _meet(mark, t.content) for t in added if t is not token
            )
        ):
            yield mark


def _meet(one: str, other: str) -> bool:
    """Can one of two strings begin inside the other and end behind it?"""
    sizes = range(1, min(len(one), len(other)))
    return any(one.endswith(other[:n]) or other.endswith(one[:n]) for n in sizes)


def _holds(tokenizer: Any, mark: str, marks: Sequence[str]) -> bool:
    """Does cutting at a mark give the ids of the whole here? What is said above is said of the versions known now."""
    alone = tokenizer.backend_tokenizer.encode
    for left in (*LEFT, *marks):
        for right in (*RIGHT, *marks):
            parts = [alone(text, add_special_tokens=False).ids for text in (left, mark + right)]
            if _ids(tokenizer, left + mark + right) != parts[0] + parts[1]:
                return False
    return True


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
