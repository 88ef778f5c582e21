"""DPO: a training on preference pairs by TRL's DPOTrainer, with an adapter or of all weights."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pipelines import train
from pipelines.train_config import DpoConfig
from pipelines.train_model import load_model, weights_dtype
from pipelines.train_pairs import load_pairs, rows_of
from pipelines.train_session import Kind, Sides, template_of, train_on


def train_dpo(
    source: str,
    out: Path,
    config: DpoConfig,
    *,
    given: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train on the pairs of `source` (see `load_pairs`) into the folder `out`; returns the manifest."""
    return train_on(
        KIND, source, lambda *_: load_pairs(source), out, config, given=given, resume=resume, overwrite=overwrite
    )


def _trainer(job: train.Job, tokenizer: Any, sides: Sides) -> Any:
    from datasets import Dataset
    from trl import DPOConfig as Arguments
    from trl import DPOTrainer

    template = template_of(job.config)
    extra = {"chat_template_kwargs": template} if template else {}
    data = [Dataset.from_list([{**row, **extra} for row in rows_of(side)]) for side in sides]
    full = job.config.full
    # a full training would hold its reference beside it: its log-probabilities are computed beforehand instead
    arguments = Arguments(
        **train.arguments(job), beta=job.hyper.beta, loss_type=job.hyper.loss_type.split(","),
        precompute_ref_log_probs=full,
    )  # fmt: skip
    return DPOTrainer(
        model=load_model(job.config.model, job.config.revision, weights_dtype(job.config.dtype, job.device, full=full)),
        args=arguments, train_dataset=data[0], eval_dataset=data[1] if sides[1] else None, processing_class=tokenizer,
        peft_config=None if full else train.adapter_of(job.hyper),
    )  # fmt: skip


KIND = Kind("dpo", 2, ("rewards/margins", "rewards/accuracies"), _trainer)


def lines(out: Path, manifest: dict[str, Any]) -> list[str]:
    """What the command prints."""
    data, test = manifest["data"], manifest["test"]
    told = [
        f"loss {manifest['loss_first']:.3f} at the first step, {manifest['loss_last']:.3f} over the last tenth",
        f"margin {manifest['train']['margin']:.3f}, accuracy {manifest['train']['accuracy']:.1%} on train rows then",
    ]
    if test:
        told.append(f"margin {test['margin']:.3f}, accuracy {test['accuracy']:.1%} on {data['test']} test rows")
    return [*told, *ending(out, manifest)]


def ending(out: Path, manifest: dict[str, Any]) -> list[str]:
    """Where the result lies, and what comes next."""
    told = [f"{manifest['steps']} steps in {manifest['seconds']:.0f} s: {out}"]
    if not manifest.get("merged"):
        adapter, merged = shlex.quote(str(out / manifest["adapter"])), shlex.quote(f"{out}-merged")
        return [*told, f"next: pairgen merge {adapter} --out {merged}"]
    merged = shlex.quote(str(out / manifest["merged"]))
    return [*told, f"next: pairgen rollout --model {merged} --out RUN"]
