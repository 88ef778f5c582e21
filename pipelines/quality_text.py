"""What the finished set is like, in words for a person: for the terminal and for the card. Pure text."""

from __future__ import annotations

from collections.abc import Sequence

from pairgen.console import table
from pipelines.audit import Shortcut
from pipelines.refine import Quality, TokenCheck
from pipelines.thin import Thinning

RULES = {
    "longer": "the longer side", "longer_tokens": "the side with more tokens", "punctuation": "more punctuation",
    "ending": "how it ends", "n_gram": "what it holds",
}  # fmt: skip


def quality_lines(quality: Quality) -> list[str]:
    """The audit over all pairs as a table, then what is to be known of tokens, thinning and quotas."""
    rows = [cells for s, cells in zip(quality.shortcuts, audit_rows(quality.shortcuts), strict=True) if not s.strategy]
    header = ("rules that read no prompt", "the rejected side", "train", "test")
    lines = [*table([row[1:] for row in rows], header), ""] if rows else []
    return [*lines, *remarks(quality)]


def string_lines(quality: Quality) -> list[str]:
    """The strings that mark the rejected side over all pairs, a rule a block."""
    lines = []
    for s in quality.shortcuts:
        if s.found and not s.strategy:
            lines += [f"{RULES.get(s.rule, s.rule)}: {s.tells}", *(f"  {text}" for text in s.found)]
    return lines


def audit_rows(shortcuts: Sequence[Shortcut]) -> list[tuple[str, str, str, str, str]]:
    """Strategy, rule, what tells the rejected side, and the accuracy on train and test."""
    return [
        (s.strategy or "all", RULES.get(s.rule, s.rule), _tells(s), f"{s.train:.1%}", _share(s.test)) for s in shortcuts
    ]


def remarks(quality: Quality) -> list[str]:
    """A sentence each: tokens, thinning, what there was too little of, what both sides of the split ask."""
    lines = [_thinning(t) for t in quality.thinned]
    for s in quality.short:
        option = s.option.replace("_", "-")
        lines.append(f"--{option}{f' {s.name}' if s.name else ''}: {s.wanted} pairs were wanted, there are {s.got}.")
    if quality.shared:
        lines.append(f"Train and test share what {quality.shared} first prompts ask.")
    return [*lines, *(_tokens(quality.tokens) if quality.tokens else [])]


def _tells(shortcut: Shortcut) -> str:
    count = len(shortcut.found)
    return f"{shortcut.tells} ({count} string{'s' * (count != 1)})" if count else shortcut.tells


def _share(value: float) -> str:
    return "none" if value < 0 else f"{value:.1%}"


def _thinning(t: Thinning) -> str:
    rule = f"The length rule was right in {t.before:.1%} of {t.pairs} {t.split} pairs"
    if t.removed:
        return f"{rule}; without {t.removed} of them it is right in {t.after:.1%}."
    if t.missing:
        return (
            f"{rule}, and taking pairs out does not help: {t.missing} more would be needed whose other side is the "
            "longer (add a strategy such as contrast or format_break)."
        )
    return f"{rule}, as wanted."


def _tokens(check: TokenCheck) -> list[str]:
    lengths = ", ".join(f"{n.column} {n.median:,} (at most {n.max:,})" for n in check.lengths)
    lines = [f"Tokens, median: {lengths}."] if lengths else []
    lines.append(f"No pair is cut at a max_length of {check.needed_length:,} tokens.")
    if check.max_length and check.needed_length > check.max_length:
        lines[-1] = (
            f"Nothing is cut at a max_length of {check.max_length:,} tokens: longer pairs were dropped "
            f"({check.needed_length:,} would hold all)."
        )
    if check.broken_prefix:
        lines.append(
            f"In {check.broken_prefix:,} pairs the chat template writes the prompt otherwise once a reply follows, so "
            "that the trainer's prompt ends earlier."
        )
    return lines
