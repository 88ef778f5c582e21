"""contrast: what was said to the same prompt in an episode that was not won. Nothing is invented.

Every such reply makes a pair of its own, so that a prompt has each won reply against each rival (up to a bound).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from corruptions.options import one_of, whole_number
from pairgen.strategy import Corruption, Decline, Material, Strategy

OUTCOMES = ("lose", "aborted")
MODELS = ("own", "any")
MOST_PER_PROMPT = 20


class Wanted(NamedTuple):
    """The options, read. `outcome` None takes both."""

    outcome: str | None
    any_model: bool
    per_prompt: int


def read_options(options: Mapping[str, str]) -> Wanted:
    return Wanted(
        one_of("contrast", options, "outcome", OUTCOMES),
        one_of("contrast", options, "models", MODELS) == "any",
        whole_number("contrast", options, "per_prompt", 0, 100_000, MOST_PER_PROMPT),
    )


def corrupt(material: Material, chance: random.Random, options: Mapping[str, str]) -> tuple[Corruption, ...] | Decline:
    """Each distinct rival that says something else; the detail is how its episode ended, and whose it is if another's.

    A reply that ended in a loss here and in an abort there is one rival, an aborted one.
    """
    wanted, model = read_options(options), material.move.model
    seen, found = {" ".join(material.move.reply.split())}, []
    for rival in sorted(material.rivals, key=lambda r: (r.model != model, r)):
        said = " ".join(rival.reply.split())
        if wanted.outcome not in (None, rival.outcome) or not (wanted.any_model or rival.model == model):
            continue
        if said not in seen:
            seen.add(said)
            whose = "" if rival.model == model else f"/{rival.model}"
            found.append(Corruption(rival.reply, rival.outcome + whose))
    return tuple(found) or Decline("no_rival")


STRATEGY = Strategy(
    "contrast",
    "what the same model said to the same prompt in a lost or aborted episode (play with --samples above 1)",
    corrupt,
    options={
        "outcome": "lose or aborted: only rivals of such episodes",
        "models": "own (default), or any: rivals that another model said, too",
        "per_prompt": f"the most pairs of one prompt, over all runs (default {MOST_PER_PROMPT}; 0: all)",
    },
    most_per_prompt=MOST_PER_PROMPT,
    check=read_options,
)
