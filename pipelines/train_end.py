"""The end of a training: the merged checkpoint if it was asked for, the model card, the manifest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairgen.console import say
from pipelines import train_folder
from pipelines.merge import QUESTION, Merged, finish_checkpoint, lines_of, merge
from pipelines.train_config import TrainConfig
from pipelines.train_model import Device, quiet

TITLES = {"dpo": "trained by DPO", "sft": "fine-tuned"}


def model_name(model: str) -> str:
    """A model without the place that it has on this machine."""
    return Path(model).name if model.startswith(("/", ".", "~")) or Path(model).exists() else model


def close(
    out: Path, config: TrainConfig, manifest: dict[str, Any], turn: Sequence[dict[str, str]], device: Device
) -> dict[str, Any]:
    """Merge where that is wanted and still to do, then write card and manifest; returns the manifest."""
    if device.rank:
        return manifest
    turn = turn or QUESTION
    manifest = {**manifest, "adapter": "" if config.full else train_folder.ADAPTER}
    with quiet():
        if config.full and "merged" not in manifest:
            manifest |= _merged(_rewrite(out / train_folder.MODEL, config, turn))
        elif config.merge and not manifest.get("merged"):
            target = out / train_folder.MERGED
            shutil.rmtree(target, ignore_errors=True)
            adapter = out / train_folder.ADAPTER
            manifest |= _merged(merge(adapter, target, model=config.model, revision=config.revision, turn=turn))
    train_folder.end(out, manifest, card(manifest))
    return manifest


def _merged(made: Merged) -> dict[str, Any]:
    for line in lines_of(made):
        say(line)
    return {"merged": made.out.name, "stops": made.stops, "eos_token_ids": list(made.eos_token_ids)}


def _rewrite(folder: Path, config: TrainConfig, turn: Sequence[dict[str, str]]) -> Merged:
    """A fully trained model, saved by its trainer in 32 bits, as a checkpoint of its base's kind and dtype."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kept = AutoConfig.from_pretrained(config.model, revision=config.revision).get_text_config().dtype
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=kept or torch.float32)
    return finish_checkpoint(model, config.model, config.revision, folder, turn=turn)


def card(manifest: dict[str, Any]) -> str:
    """The model card: what was trained on what, with which values, and what came of it."""
    data, base = manifest["data"], manifest["config"]["model"]
    head = ["---", "library_name: " + ("transformers" if manifest["config"]["full"] else "peft")]
    if "/" in base:
        head.append(f"base_model: {base}")
    head += ["tags:", "- pairgen", f"- {manifest['command']}", "- clembench", "---", ""]
    numbers = {k: manifest[k] for k in ("steps", "loss_first", "loss_last", "train", "test", "seconds")}
    recipe = manifest["config"]["recipe"]
    return "\n".join([
        *head, f"# {base}, {TITLES[manifest['command']]} on {data['name']}", "",
        f"Made with `pairgen {manifest['command']}` {manifest['versions']['pairgen']}"
        + (f" by the recipe `{recipe}`." if recipe else "."), "",
        f"- data: {data['name']}, {data['train']} train and {data['test']} test rows, content `{data['content'][:16]}`",
        *(f"- left out: {n} {why}" for why, n in sorted(data["left_out"].items())),
        *(f"- {name}: {json.dumps(value)}" for name, value in manifest["hyper"].items() if value not in ("", [])),
        "", "| | |", "|---|---|", *(f"| {name} | {json.dumps(value)} |" for name, value in numbers.items()), "",
        "Versions: " + ", ".join(f"{name} {value}" for name, value in manifest["versions"].items()), "",
    ])  # fmt: skip
