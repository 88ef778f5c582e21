"""contrast: what the same model said to the same prompt in an episode that it did not win. Nothing is invented."""

from __future__ import annotations

import random
from collections.abc import Mapping

from corruptions.options import one_of
from pairgen.strategy import Corruption, Decline, Material, Strategy

OUTCOMES = ("lose", "aborted")


def corrupt(material: Material, chance: random.Random, options: Mapping[str, str]) -> Corruption | Decline:
    """One of the rivals, drawn from those that say something else; the detail is how their episode ended."""
    wanted = one_of("contrast", options, "outcome", OUTCOMES)
    own = material.move.reply.split()
    others = sorted({r for r in material.rivals if r.reply.split() != own and wanted in (None, r.outcome)})
    if not others:
        return Decline("no_rival")
    rival = chance.choice(others)
    return Corruption(rival.reply, rival.outcome)


STRATEGY = Strategy(
    "contrast",
    "the same model's own reply to the same prompt in a lost or aborted episode (play with --samples above 1)",
    corrupt,
    options={"outcome": "lose or aborted: only rivals of such episodes"},
)
