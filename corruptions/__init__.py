"""The strategies: a move in, the other side of its pair out. A new one is a file here and a line in the table."""

from __future__ import annotations

from corruptions import contrast, corrected, format_break, looping, ramble, role_bleed, verbose
from pairgen.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    "verbose": verbose.STRATEGY,
    "looping": looping.STRATEGY,
    "format_break": format_break.STRATEGY,
    "role_bleed": role_bleed.STRATEGY,
    "ramble": ramble.STRATEGY,
    "contrast": contrast.STRATEGY,
    "corrected": corrected.STRATEGY,
}
