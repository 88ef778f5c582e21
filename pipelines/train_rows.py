"""What a trainer would silently do to rows: cut them, drop them, or learn nothing from them. Told before it happens.

Pure: rows and a tokenizer in, a reason for each unfit row out. Counts as TRL does (see `tokens`).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pairgen.errors import PairgenError
from pairgen.records import Pair, to_dict
from pipelines.tokens import BATCH, Counts, Tokenizer, count, special_tokens

REASONS: Mapping[str, tuple[str, str]] = {
    "over_max_length": ("longer than --max-length: TRL would cut its end or drop it", "--max-length {longest}"),
    "broken_prefix": (
        "its prompt reads otherwise once a reply follows: the model would learn from another prompt than it is asked",
        "--chat-template-kwargs enable_thinking=false (or true, as the model was asked), or --allow-broken-prefix",
    ),
    "identical": ("both sides say the same", ""),
    "empty": ("a side says nothing", ""),
    "special_token": ("a text holds a special token of the tokenizer", ""),
    "not_a_reply": ("a side is no reply of the assistant, or its prompt ends with one", ""),
    "template_refuses": ("the chat template refuses its messages", ""),
}
"""What each reason means, and the option that mends it where there is one beside --drop-unfit."""


class Checked(NamedTuple):
    """A reason for each row ("" where it is fit), its tokens, and the tokens of the longest row that is else fit."""

    reasons: tuple[str, ...]
    counts: tuple[Counts, ...]
    longest: int

    @property
    def unfit(self) -> Counter[str]:
        return Counter(reason for reason in self.reasons if reason)


NO_COUNTS = Counts(0, 0, 0, True, False)


def check_pairs(
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    max_length: int = 0,
    *,
    broken_prefix: bool = False,
    chosen_only: bool = False,
    **template: Any,
) -> Checked:
    """Judge pairs as TRL would read them; a `max_length` of 0 is none, `broken_prefix` lets those pass.

    With `chosen_only`, as prompts with one completion: there is no rejected side to look at.
    """
    if chosen_only:
        pairs = [dataclasses.replace(pair, rejected=pair.chosen) for pair in pairs]
    special = special_tokens(tokenizer)
    reasons: list[str] = []
    counts: list[Counts] = []
    for start in range(0, len(pairs), BATCH):
        some = pairs[start : start + BATCH]
        counted = _counted([sides_of(pair) for pair in some], tokenizer, template)
        for pair, one in zip(some, counted, strict=True):
            why = _why(pair, special, alone=chosen_only)
            reasons.append(why or _why_counted(one, broken_prefix=broken_prefix, alone=chosen_only))
            counts.append(one or NO_COUNTS)
    longest = max((c.longest for c, why in zip(counts, reasons, strict=True) if not why), default=0)
    if max_length:
        over = [not why and c.longest > max_length for c, why in zip(counts, reasons, strict=True)]
        reasons = ["over_max_length" if o else why for o, why in zip(over, reasons, strict=True)]
    return Checked(tuple(reasons), tuple(counts), longest)


def sides_of(pair: Pair) -> tuple[list[Any], list[Any], list[Any]]:
    """Prompt, chosen and rejected as lists of `{role, content}`."""
    prompt, chosen, rejected = ([to_dict(m) for m in side] for side in (pair.prompt, pair.chosen, pair.rejected))
    return prompt, chosen, rejected


def refusal(unfit: Mapping[str, int], rows: int, longest: int) -> str:
    """One sentence that says why rows are refused, and what to do."""
    said = [f"{n} {reason} ({REASONS[reason][0]})" for reason, n in sorted(unfit.items())]
    fixes = [fix.format(longest=longest) for reason in sorted(unfit) if (fix := REASONS[reason][1])]
    return (
        f"{sum(unfit.values())} of {rows} rows cannot be trained on as they are: {'; '.join(said)}. "
        f"Give {', '.join([*fixes, ''])}{'or ' if fixes else ''}--drop-unfit to leave them out."
    )


def refuse(unfit: Mapping[str, int], rows: int, longest: int, *, drop: bool) -> None:
    """Raise PairgenError where rows are unfit and may not be dropped, or where none would be left."""
    if unfit and not drop:
        raise PairgenError(refusal(unfit, rows, longest))
    if sum(unfit.values()) >= rows:
        why = refusal(unfit, rows, longest).replace(" or --drop-unfit to leave them out", " to keep some")
        raise PairgenError(f"No row is left to train on. {why}" if unfit else "There is no row to train on.")


def _counted(
    sides: Sequence[Sequence[Any]], tokenizer: Tokenizer, template: Mapping[str, Any]
) -> Sequence[Counts | None]:
    """The counts of some pairs; None for one that the chat template refuses."""
    try:
        return count(sides, tokenizer, **template)
    except Exception:  # templates raise what they like: find out whose row it is
        if len(sides) == 1:
            return [None]
        return [one for side in sides for one in _counted([side], tokenizer, template)]


def _why(pair: Pair, special: re.Pattern[str], *, alone: bool) -> str:
    """What is wrong with the texts of a pair, before any token is looked at."""
    chosen, rejected = (" ".join(m.content for m in side).split() for side in (pair.chosen, pair.rejected))
    if not (chosen and rejected and pair.prompt):
        return "empty"
    if not alone and chosen == rejected:
        return "identical"
    if pair.prompt[-1].role == "assistant" or any(s[-1].role != "assistant" for s in (pair.chosen, pair.rejected)):
        return "not_a_reply"
    said = (m.content for side in (pair.prompt, pair.chosen, pair.rejected) for m in side)
    return "special_token" if any(map(special.search, said)) else ""


def _why_counted(counted: Counts | None, *, broken_prefix: bool, alone: bool) -> str:
    if counted is None:
        return "template_refuses"
    if counted.same and not alone:
        return "identical"
    return "" if counted.prefix or broken_prefix else "broken_prefix"
