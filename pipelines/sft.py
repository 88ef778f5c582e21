"""SFT: a training on won moves by TRL's SFTTrainer; the loss lies on the model's own words alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pipelines import sft_sources, train
from pipelines.dpo import ending
from pipelines.train_config import SftConfig
from pipelines.train_model import load_model, weights_dtype
from pipelines.train_pairs import Loaded, rows_of
from pipelines.train_session import Kind, Sides, template_of, train_on


def train_sft(
    sources: Sequence[str],
    out: Path,
    config: SftConfig,
    *,
    clembench: Path | None = None,
    eval_keys: Sequence[Path] = (),
    eval_results: Sequence[Path] = (),
    given: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train on won moves of `sources` (see `sft_sources`), or on chosen sides, into `out`; returns the manifest."""

    def load(settled: SftConfig, seed: int) -> Loaded:
        if settled.pairs:
            return sft_sources.load_chosen(settled.pairs)
        return sft_sources.load_won(
            sources, settled, seed, clembench=clembench, eval_keys=eval_keys, eval_results=eval_results
        )

    source = config.pairs or ", ".join(sources)
    return train_on(KIND, source, load, out, config, given=given, resume=resume, overwrite=overwrite)


def _trainer(job: train.Job, tokenizer: Any, sides: Sides) -> Any:
    from datasets import Dataset
    from trl import SFTConfig as Arguments
    from trl import SFTTrainer

    template = template_of(job.config)
    extra = {"chat_template_kwargs": template} if template else {}
    data = [
        Dataset.from_list([{"prompt": r["prompt"], "completion": r["chosen"], **extra} for r in rows_of(side)])
        for side in sides
    ]  # fmt: skip
    full = job.config.full
    return SFTTrainer(
        model=load_model(job.config.model, job.config.revision, weights_dtype(job.config.dtype, job.device, full=full)),
        args=Arguments(**train.arguments(job), completion_only_loss=True, packing=False),
        train_dataset=data[0], eval_dataset=data[1] if sides[1] else None, processing_class=tokenizer,
        peft_config=None if full else train.adapter_of(job.hyper),
    )  # fmt: skip


KIND = Kind("sft", 1, ("mean_token_accuracy",), _trainer)


def lines(out: Path, manifest: dict[str, Any]) -> list[str]:
    """What the command prints."""
    test = manifest["test"]
    told = [f"loss {manifest['loss_first']:.3f} at the first step, {manifest['loss_last']:.3f} over the last tenth"]
    if test:
        told.append(f"loss {test['loss']:.3f} on {manifest['data']['test']} test rows")
    return [*told, *ending(out, manifest)]
