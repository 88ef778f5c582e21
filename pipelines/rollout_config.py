"""The configuration of a rollout, and what of it a resumed run may be given anew. Reads no file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.errors import UsageProblem


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """Every option of `pairgen rollout` that decides what is played and how; names are the options' names."""

    model: str
    engine: str = "auto"
    revision: str | None = None
    base_url: tuple[str, ...] = ()
    clembench: str | None = None
    partner: str = ""
    learner: str = "alternate"
    lora: str | None = None
    games: tuple[str, ...] = ()
    limit: int = 0
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 300
    seed: int = 42
    stop: tuple[str, ...] = ()
    exclude_eval: bool | None = None
    only_eval: bool = False
    eval_keys: tuple[str, ...] = ()
    eval_split: str = ""
    eval_results: tuple[str, ...] = ()
    concurrency: int = 64
    max_model_len: int | None = None
    dtype: str = "auto"
    timeout: float = 600.0
    restarts: int = 3
    engine_arg: tuple[str, ...] = ()
    chat_template_kwargs: tuple[str, ...] = ()


MAY_GROW = frozenset({"games", "limit", "samples"})
"""What a resumed run may be given anew: it plays what is missing of the larger plan."""

MAY_CHANGE = frozenset(
    {"engine", "base_url", "clembench", "concurrency", "max_model_len", "dtype", "timeout", "engine_arg"}
)
"""What a resumed run may be given anew since it does not say what is played: where and how fast."""


def resumed(saved: dict[str, Any], config: RolloutConfig, given: Collection[str]) -> RolloutConfig:
    """The saved configuration with what was `given` on the command line and may differ.

    A partner may have moved to another address, as long as it is the same model. Raises UsageProblem that names every
    option that contradicts what was played so far.
    """
    fields = {f.name: f for f in dataclasses.fields(RolloutConfig)}
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in saved.items() if k in fields}
    base = RolloutConfig(**known)
    contradictions = [
        f"--{name.replace('_', '-')} {getattr(config, name)} (the run has {getattr(base, name)})"
        for name in fields
        if name in given and name not in MAY_GROW | MAY_CHANGE and _said(config, name) != _said(base, name)
    ]
    if contradictions:
        raise UsageProblem(
            f"--resume goes on with the run's own settings; leave out {', '.join(contradictions)}, "
            "or play a new run with another --out."
        )
    if config.samples > base.samples and "samples" in given and repeats(config.samples, base.temperature):
        raise UsageProblem(
            f"--samples {config.samples} would play every episode of this run alike, since its temperature is 0: "
            "play a new run with --temperature 0.7 and another --out."
        )
    changes = {name: getattr(config, name) for name in given if name in {*MAY_GROW, *MAY_CHANGE, "partner"}}
    if len(changes.get("games", ())):
        changes["games"] = tuple(dict.fromkeys([*base.games, *changes["games"]]))
    return dataclasses.replace(base, **changes)


def _said(config: RolloutConfig, name: str) -> Any:
    """What an option says of what is played."""
    return partner_of(config.partner).model if name == "partner" else getattr(config, name)


def repeats(samples: int, temperature: float) -> bool:
    """Whether the samples of an instance would all be the same play."""
    return samples > 1 and temperature == 0


class Partner(NamedTuple):
    """The model of `--partner MODEL[@URL]`, and its server ("": it is loaded here)."""

    model: str
    url: str


def partner_of(said: str) -> Partner:
    """The parts of `--partner`; of nothing, two empty ones."""
    match = re.fullmatch(r"(.*)@(https?://.+)", said)
    return Partner(match[1], match[2]) if match else Partner(said, "")


def check_partner(said: str) -> None:
    """Raise UsageProblem where a part of `--partner` is missing."""
    partner = partner_of(said)
    if partner.url and not partner.model:
        raise UsageProblem(
            f"--partner {said} names no model: write --partner NAME{said}, the name that the server knows."
        )
    if "@" in partner.model and not Path(partner.model).exists():
        raise UsageProblem(
            f"--partner {said}: write it as MODEL@http://HOST:PORT/v1, or as MODEL alone to load it here."
        )
