"""dpo.yaml: a pair set's own configuration for `trl dpo --config dpo.yaml`, run in the set's folder. Pure text.

TRL reads the folder `default`, whose files name the splits (it needs one called test); a key that TRL does not know
would be taken for an argument of accelerate, so every key here is one of TRL's.
"""

from __future__ import annotations

from typing import Any

from pipelines.card import max_length_of, trainable
from pipelines.manifest import Manifest
from pipelines.recipes import DEFAULTS

NAME = "dpo.yaml"
PER_DEVICE = 2


def render(manifest: Manifest) -> str:
    """The configuration: hyperparameters as `pairgen dpo` has them, the length and the model as the set has them."""
    lines = [
        "# In this folder: trl dpo --config dpo.yaml",
        "# What is given after it wins: --model_name_or_path CHECKPOINT --output_dir FOLDER",
        "# Without a GPU: --use_cpu true",
        *_notes(manifest),
    ]
    return "\n".join([*lines, *(f"{name}: {_text(value)}" for name, value in _values(manifest).items())]) + "\n"


def _notes(manifest: Manifest) -> list[str]:
    template = sorted({kwarg for run in manifest.runs for kwarg in run.chat_template_kwargs})
    if not template:
        return []
    return [f"# The model was asked with {', '.join(template)}: TRL takes that from rows alone, pairgen dpo adds it."]


def _values(manifest: Manifest) -> dict[str, Any]:
    values = DEFAULTS["dpo"]
    return {
        "model_name_or_path": _model(manifest),
        "dtype": "auto",
        "dataset_name": "./default",
        "dataset_train_split": "train",
        "dataset_test_split": "test",
        "eval_strategy": "epoch" if manifest.test else "no",
        "max_length": max_length_of(manifest),
        "beta": values["beta"],
        "loss_type": values["loss_type"],
        "learning_rate": values["learning_rate"],
        "lr_scheduler_type": values["scheduler"],
        "warmup_steps": values["warmup_ratio"],
        "num_train_epochs": values["epochs"],
        "per_device_train_batch_size": PER_DEVICE,
        "per_device_eval_batch_size": PER_DEVICE,
        "gradient_accumulation_steps": values["batch_size"] // PER_DEVICE,
        "use_peft": True,
        "lora_r": values["lora_r"],
        "lora_alpha": values["lora_alpha"],
        "lora_dropout": values["lora_dropout"],
        "lora_target_modules": values["lora_targets"],
        "seed": values["seed"],
        "save_strategy": "epoch",
        "logging_steps": 10,
        "report_to": "none",
        "output_dir": "../trl-dpo",
    }


def _model(manifest: Manifest) -> str:
    """The one model of all runs, by its name on the Hub or its folder's; a set of several, or of adapters, has none."""
    on_hub = trainable(manifest)
    names = {run.model for run in manifest.runs if not run.lora}
    return on_hub or next((name for name in names if name and len(names) == 1), "MODEL")


def _text(value: Any) -> str:
    """A value as YAML reads it back: 5e-05 would be a text, yes and no would be truths."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0")
    return f'"{value}"' if isinstance(value, str) else str(value)
