"""Recipes: the hyperparameters of published trainings by name, and those that hold where nothing is said.

A literal table. Knows no trainer: what a value does is the affair of `train`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pairgen.errors import UsageProblem, did_you_mean


@dataclass(frozen=True, slots=True)
class Hyper:
    """Everything that decides what is learned from given rows. A recipe, an option and a field share their name.

    `batch_size` is the effective one: rows an optimiser step, over all devices and accumulated steps. `max_length` 0
    is the longest row. `lora_save` are modules that are trained whole beside the adapter (PEFT's modules_to_save).
    `beta` and `loss_type` belong to DPO.
    """

    learning_rate: float
    scheduler: str
    warmup_ratio: float
    batch_size: int
    epochs: float
    max_length: int
    seed: int
    lora_r: int
    lora_alpha: int
    lora_dropout: float
    lora_targets: str
    lora_save: tuple[str, ...]
    beta: float = 0.0
    loss_type: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Published hyperparameters: for which command, from where, and what one should know before using them."""

    command: str
    source: str
    note: str
    values: Mapping[str, Any]


LORA = {"lora_r": 16, "lora_alpha": 32, "lora_dropout": 0.05, "lora_targets": "all-linear"}
POTENTIAL = "github.com/xMakaco/dpo-potential-in-dialogue-games, fine_tuning/"
PLAYPEN = "github.com/lm-playpen/playpen, examples/trl/"
SAVED = ("lm_head", "embed_tokens")

RECIPES: Mapping[str, Recipe] = {
    "qwen3.5-9b-antiverbosity": Recipe(
        "dpo", POTENTIAL + "dpo.py",
        "995 pairs of the fine-tuned model's own won moves against the same move with filler; from the merged result "
        "of qwen3.5-9b-sft.",
        {
            "learning_rate": 5e-5, "scheduler": "linear", "warmup_ratio": 0.05, "batch_size": 8, "epochs": 1,
            "max_length": 2048, "beta": 0.3, "loss_type": "sigmoid", "seed": 42, **LORA, "lora_save": (),
        },
    ),
    "llama3.1-8b-dpo-mix": Recipe(
        "dpo", PLAYPEN + "dpo_trainer_lora.py",
        "playpen's turn-level pairs, half and half with the Tülu 3 8B preference mixture, at most 20 pairs a prompt; "
        "from the result of llama3.1-8b-sft-mix. The script spells embed_tokens as embed_token, which names no module: "
        "--lora-save lm_head trains what it trained.",
        {
            "learning_rate": 5e-6, "scheduler": "linear", "warmup_ratio": 0.03, "batch_size": 16, "epochs": 2,
            "max_length": 4096, "beta": 0.1, "loss_type": "sigmoid", "seed": 7331, **LORA, "lora_save": SAVED,
        },
    ),
    "qwen3.5-9b-sft": Recipe(
        "sft", POTENTIAL + "sft.py",
        "Won episodes of playpen's interactions.",
        {
            "learning_rate": 2e-4, "scheduler": "linear", "warmup_ratio": 0.05, "batch_size": 16, "epochs": 1,
            "max_length": 1024, "seed": 42, **LORA, "lora_save": (),
        },
    ),
    "llama3.1-8b-sft-mix": Recipe(
        "sft", PLAYPEN + "sft_trainer_lora.py",
        "Won episodes of playpen's interactions and its SFT-Final-Dataset, with as many rows of the Tülu 3 SFT "
        "mixture. The script spells embed_tokens as embed_token, which names no module: --lora-save lm_head trains "
        "what it trained.",
        {
            "learning_rate": 5e-6, "scheduler": "linear", "warmup_ratio": 0.03, "batch_size": 16, "epochs": 2,
            "max_length": 4096, "seed": 7331, **LORA, "lora_save": SAVED,
        },
    ),
}  # fmt: skip

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "dpo": {**RECIPES["qwen3.5-9b-antiverbosity"].values, "max_length": 0},
    "sft": {**RECIPES["qwen3.5-9b-sft"].values, "max_length": 0},
}
FULL_RATE = {"dpo": 1e-6, "sft": 2e-5}
"""The learning rate where all weights are trained and nothing was said: TRL's defaults."""


def recipe_of(command: str, name: str) -> Recipe:
    """The recipe of this name. Raises UsageProblem where there is none for the command."""
    known = {n: r for n, r in RECIPES.items() if r.command == command}
    if name in known:
        return known[name]
    if name in RECIPES:
        raise UsageProblem(
            f"--recipe {name} is for pairgen {RECIPES[name].command}: take {' or '.join(sorted(known))} here."
        )
    raise UsageProblem(f"--recipe {name}: {did_you_mean(name, known)}")


def settle(command: str, recipe: str, said: Mapping[str, Any], *, full: bool = False) -> Hyper:
    """The hyperparameters: what was `said` (not None), else the recipe's, else the defaults of the command."""
    values = dict(DEFAULTS[command])
    if recipe:
        values |= recipe_of(command, recipe).values
    if full:  # a recipe's rate is an adapter's
        values["learning_rate"] = FULL_RATE[command]
    names = {f.name for f in dataclasses.fields(Hyper)}
    return Hyper(**{**values, **{name: v for name, v in said.items() if name in names and v is not None}})


def described(command: str) -> list[str]:
    """The recipes of a command with all values and their source, for a person."""
    lines = []
    for name, recipe in RECIPES.items():
        if recipe.command == command:
            lines += [f"{name}  ({recipe.source})", f"    {recipe.note}"]
            shown = {k: ",".join(v) or "none" if isinstance(v, tuple) else v for k, v in recipe.values.items()}
            lines += ["    " + "  ".join(f"{k}={v}" for k, v in shown.items()), ""]
    return lines[:-1]
