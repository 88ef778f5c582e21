"""The configurations of `pairgen dpo` and `pairgen sft`, and what of one a resumed training may be given anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pairgen.errors import UsageProblem


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """The options that both trainings share; names are the options' names. None: as the recipe, or the default.

    `max_steps` 0 trains for all epochs, `per_device_batch` 0 takes what fits, `save_steps` 0 saves ten times.
    """

    model: str = ""
    revision: str | None = None
    recipe: str = ""
    learning_rate: float | None = None
    scheduler: str | None = None
    warmup_ratio: float | None = None
    batch_size: int | None = None
    epochs: float | None = None
    max_length: int | None = None
    seed: int | None = None
    lora_r: int | None = None
    lora_alpha: int | None = None
    lora_dropout: float | None = None
    lora_targets: str | None = None
    lora_save: tuple[str, ...] | None = None
    full: bool = False
    max_steps: int = 0
    per_device_batch: int = 0
    gradient_checkpointing: bool = True
    dtype: str = "auto"
    save_steps: int = 0
    chat_template_kwargs: tuple[str, ...] = ()
    drop_unfit: bool = False
    allow_broken_prefix: bool = False
    merge: bool = False


@dataclass(frozen=True, slots=True)
class DpoConfig(TrainConfig):
    """Every option of `pairgen dpo` that decides what is learned and how."""

    beta: float | None = None
    loss_type: str | None = None


@dataclass(frozen=True, slots=True)
class SftConfig(TrainConfig):
    """Every option of `pairgen sft` that decides what is learned and how; 0 is no limit."""

    pairs: str = ""
    games: tuple[str, ...] = ()
    per_player: int = 0
    moves_per_game: int = 0
    test_size: float = 0.1
    eval_keys: tuple[str, ...] = ()
    eval_split: str = ""
    eval_results: tuple[str, ...] = ()
    no_eval_split: bool = False


MAY_CHANGE = frozenset({"merge"})
"""What a resumed training may be given anew: it changes nothing that is learned."""

C = TypeVar("C", bound=TrainConfig)


def resumed(saved: Mapping[str, Any], config: C, given: Collection[str]) -> C:
    """The saved configuration, with what was `given` and may differ.

    Raises UsageProblem that names every option that contradicts what was trained so far.
    """
    names = [f.name for f in dataclasses.fields(config)]
    known: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in saved.items() if n in names}
    base = type(config)(**known)
    contradictions = [
        f"--{name.replace('_', '-')} {getattr(config, name)} (the training has {getattr(base, name)})"
        for name in names
        if name in given and name not in MAY_CHANGE and getattr(config, name) != getattr(base, name)
    ]
    if contradictions:
        raise UsageProblem(
            f"--resume goes on with the training's own settings; leave out {', '.join(contradictions)}, "
            "or train anew with another --out."
        )
    return dataclasses.replace(base, **{name: getattr(config, name) for name in given if name in MAY_CHANGE})
