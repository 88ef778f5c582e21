"""The strategies: a won move in, a rejected side out. A new one is a file beside this one and a line in the table."""

from __future__ import annotations

from corruptions import contrast, format_break, looping, role_bleed, verbose
from pairgen.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    "verbose": verbose.STRATEGY,
    "looping": looping.STRATEGY,
    "format_break": format_break.STRATEGY,
    "role_bleed": role_bleed.STRATEGY,
    "contrast": contrast.STRATEGY,
}
