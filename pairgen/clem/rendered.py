"""Whether a rendered chat template says the same as a list of messages. Pure; knows no tokenizer and no template.

A template puts its own marks around each message: special tokens, a role's name after one, white space, and at most a
system text of its own at the beginning. Anything else between, before or after the messages is a difference.
"""

from __future__ import annotations

import functools
import re

from pairgen.records import Message, Messages

SPECIAL = (
    r"<\|[^|<>\n]{1,60}\|>|<｜[^｜<>\n]{1,60}｜>|</?s>|<bos>|<eos>|<pad>|</?(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>"
    r"|</?think>|<end_of_utterance>|\[PAD\]"
)
"""How the chat templates of today write what is no text."""

_SPEAKERS = {
    "user": "user", "human": "user", "inst": "user", "assistant": "assistant", "model": "assistant",
    "chatbot": "assistant", "system": "system", "developer": "system", "sys": "system",
}  # fmt: skip
_ROLE = rf"(?:{'|'.join(_SPEAKERS)}|tool|final)\b(?=\s|<|\Z)"
_MARK = re.compile(rf"(?:{SPECIAL})(?:{_ROLE})?|\s+")
_MARKS = re.compile(rf"(?:(?:{SPECIAL})(?:{_ROLE})?|\s+)*")
_NAMED = re.compile(rf"(?:{SPECIAL})({_ROLE})|<[|｜<](\w+?)(?:_TOKEN)?[|｜>]>|\[(INST)\]", re.IGNORECASE)
_ANY_SPECIAL = re.compile(SPECIAL)
_DECODED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"),
    (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def agrees(messages: Messages, text: str) -> bool | None:
    """Whether `text` is the messages in a template's marks; None where it holds no marks that this module knows.

    White space at the ends of a message does not count (many templates trim), nor does what a tokenizer's decoding
    takes away before punctuation (the text was decoded from the tokens that were sent).
    """
    if not _ANY_SPECIAL.search(text):
        return None
    return _walk(messages, text) or _walk(tuple(Message(m.role, tidy(m.content)) for m in messages), tidy(text))


def tidy(text: str) -> str:
    """Text as a tokenizer with `clean_up_tokenization_spaces` decodes it."""
    for spaced, plain in _DECODED:
        text = text.replace(spaced, plain)
    return text


def _walk(messages: Messages, text: str) -> bool:
    position = 0
    for number, message in enumerate(messages):
        content = message.content.strip()
        start = _start_of(content, text, position, first=number == 0)
        if start < 0 or _speaker(text[position:start]) not in ("", message.role):
            return False
        position = start + len(content)
    return _end_of_marks(text, position) == len(text)


def _start_of(content: str, text: str, position: int, *, first: bool) -> int:
    """Where `content` begins behind nothing but marks (and, at the beginning, a system text), or -1."""
    end = _end_of_marks(text, position)
    if text.startswith(content, end):
        return end
    if first and _speaker(text[position:end]) == "system":
        following = _ANY_SPECIAL.search(text, end)
        return _start_of(content, text, following.start(), first=False) if following else -1
    # a message may begin with what looks like a mark
    return next((start for start in reversed(_ends(text, position)) if text.startswith(content, start)), -1)


def _end_of_marks(text: str, position: int) -> int:
    marks = _MARKS.match(text, position)
    return marks.end() if marks else position


def _ends(text: str, position: int) -> list[int]:
    """`position` and the end of every mark that follows on it without a gap."""
    ends = [position]
    while mark := _MARK.match(text, ends[-1]):
        ends.append(mark.end())
    return ends


@functools.lru_cache(maxsize=4096)
def _speaker(marks: str) -> str:
    """Whose turn the marks announce (the last one named), or "" where they name none."""
    names = [(m[1] or m[2] or m[3]).lower() for m in _NAMED.finditer(marks)]
    return next((_SPEAKERS[n] for n in reversed(names) if n in _SPEAKERS), "")
