"""Trainer checks with the target tokenizer: what a trainer will see of each pair, in tokens.

Counts as TRL's DPO does: the prompt with its generation prompt, and the prompt with each reply; a completion begins
where these part. Where a prompt is no prefix of prompt and reply, that is the chat template's doing: told, not dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from pairgen.errors import PairgenError
from pipelines.slim import decisions, texts

COUNTED = {"prompt_tokens": pl.Int64(), "chosen_tokens": pl.Int64(), "rejected_tokens": pl.Int64()}
BATCH = 256


class Tokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    @property
    def all_special_tokens(self) -> list[str]: ...
    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]: ...
    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any: ...
    def __call__(self, text: Any, **kwargs: Any) -> Any: ...


class Counts(NamedTuple):
    """One pair as the trainer sees it; `prefix` says whether the prompt is a prefix of prompt and reply."""

    prompt: int
    chosen: int
    rejected: int
    prefix: bool
    same: bool

    @property
    def longest(self) -> int:
        """Tokens of the longer of the two sequences."""
        return self.prompt + max(self.chosen, self.rejected)


class Counted(NamedTuple):
    """The slim rows with token counts, the decisions, and the max_length that would have cut none of the sound pairs.

    `broken_prefix` pairs have a prompt that the chat template renders otherwise once a reply follows.
    """

    rows: pl.DataFrame
    decided: pl.DataFrame
    needed_length: int
    broken_prefix: int


def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a model folder or a Hub name. Raises PairgenError with the fix."""
    if name.startswith(("/", ".", "~")) and not Path(name).expanduser().exists():
        raise PairgenError(f"--tokenizer {name} does not exist: give a model folder or a Hub name.")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise PairgenError('--tokenizer needs transformers: pip install "pairgen[local]".') from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except Exception as error:  # what a tokenizer's files can raise is open
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PairgenError(
            f"--tokenizer {name} cannot be loaded ({first}): give a model folder or a Hub name."
        ) from None
    if not getattr(tokenizer, "chat_template", None):
        raise PairgenError(f"--tokenizer {name} has no chat template: give that of an instruction-tuned model.")
    loaded: Tokenizer = tokenizer
    return loaded


def check_tokens(
    rows: pl.DataFrame, pairs: pl.LazyFrame, tokenizer: Tokenizer, max_length: int = 0, **template: Any
) -> Counted:
    """Count tokens and decide on slim rows: `special_token`, `same_tokens`, and `over_max_length` (0 is no limit).

    `template` goes to the chat template, such as enable_thinking=False.
    """
    special = special_tokens(tokenizer)
    found: list[tuple[int, int, int, int, str]] = []
    longest = broken = 0
    batches = texts(pairs, rows["row"], ["prompt", "chosen", "rejected"])
    for some in (part for batch in batches for part in batch.iter_slices(BATCH)):
        listed = list(some.iter_rows())
        counts = count([row[1:] for row in listed], tokenizer, **template)
        for (row, *sides), counted in zip(listed, counts, strict=True):
            reason = _reason(sides, counted, special, max_length)
            broken += not counted.prefix
            if reason in ("", "over_max_length"):
                longest = max(longest, counted.longest)
            found.append((row, counted.prompt, counted.chosen, counted.rejected, reason))
    table = pl.DataFrame(found, schema={"row": pl.UInt32(), **COUNTED, "reason": pl.String()}, orient="row")
    joined = rows.drop(*COUNTED, strict=False).join(table, on="row", how="left", maintain_order="left")
    gone = joined.with_columns(keeper=pl.lit(""), score=pl.lit(None, dtype=pl.Float64))
    reasons = ("special_token", "same_tokens", "over_max_length")
    decided = [decisions(gone.filter(pl.col("reason") == reason), reason) for reason in reasons]
    return Counted(joined.drop("reason"), pl.concat(decided), longest, broken)


def count(sides: Sequence[Sequence[Any]], tokenizer: Tokenizer, **template: Any) -> list[Counts]:
    """The counts of pairs, each given as prompt, chosen and rejected: lists of `{role, content}`."""
    rendered: list[str] = []
    for prompt, chosen, rejected in sides:
        rendered.append(_render(tokenizer, prompt, add_generation_prompt=True, **template))
        rendered += [_render(tokenizer, [*prompt, *side], **template) for side in (chosen, rejected)]
    ids = tokenizer(rendered, add_special_tokens=False)["input_ids"] if rendered else []
    return [_counts(*ids[i : i + 3]) for i in range(0, len(ids), 3)]


def special_tokens(tokenizer: Tokenizer) -> re.Pattern[str]:
    """Matches any special token of the tokenizer."""
    added = [str(token) for token in tokenizer.added_tokens_decoder.values() if getattr(token, "special", True)]
    names = sorted({*map(str, tokenizer.all_special_tokens), *added} - {""}, key=lambda t: (-len(t), t))
    return re.compile("|".join(map(re.escape, names)) or r"(?!)")


def _render(tokenizer: Tokenizer, messages: Sequence[Any], **template: Any) -> str:
    return str(tokenizer.apply_chat_template(list(messages), tokenize=False, **template))


def _counts(prompt: Sequence[int], chosen: Sequence[int], rejected: Sequence[int]) -> Counts:
    start = min(_common(prompt, chosen), _common(prompt, rejected))
    same = list(chosen) == list(rejected)
    return Counts(start, len(chosen) - start, len(rejected) - start, start == len(prompt), same)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _reason(sides: Sequence[Any], counted: Counts, special: re.Pattern[str], max_length: int) -> str:
    said = [[message["content"] for message in side] for side in sides]
    if any(special.search(text) for side in said for text in side):
        return "special_token"
    if counted.same or [text.split() for text in said[1]] == [text.split() for text in said[2]]:
        return "same_tokens"
    return "over_max_length" if max_length and counted.longest > max_length else ""
