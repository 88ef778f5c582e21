"""One training through TRL: its arguments, its adapter, its progress, and what came of it. Knows no data set."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.console import progress
from pipelines.recipes import Hyper
from pipelines.train_config import TrainConfig
from pipelines.train_memory import Batch
from pipelines.train_model import Device

SAVES = 10
"""How often a training is saved where --save-steps says nothing."""


class Job(NamedTuple):
    """What is trained, and where its checkpoints go."""

    config: TrainConfig
    hyper: Hyper
    batch: Batch
    device: Device
    checkpoints: Path
    rows: int

    @property
    def steps(self) -> int:
        """Optimiser steps in all, counted as transformers counts them."""
        batches = math.ceil(math.ceil(self.rows / self.batch.world) / self.batch.per_device)
        an_epoch = max(math.ceil(batches / self.batch.accumulation), 1)
        return self.config.max_steps or math.ceil(self.hyper.epochs * an_epoch)


class Result(NamedTuple):
    """What came of it. `loss_last` is the mean of the last tenth of the steps, as are the numbers of `train`."""

    steps: int
    loss_first: float
    loss_last: float
    train: dict[str, float]
    test: dict[str, float]
    seconds: float


def arguments(job: Job) -> dict[str, Any]:
    """What every TRL trainer is told; nothing is left to a default that decides what is learned."""
    hyper, config = job.hyper, job.config
    return {
        "output_dir": str(job.checkpoints),
        "learning_rate": hyper.learning_rate,
        "lr_scheduler_type": hyper.scheduler,
        "warmup_steps": math.ceil(hyper.warmup_ratio * job.steps),
        "num_train_epochs": hyper.epochs,
        "max_steps": config.max_steps or -1,
        "per_device_train_batch_size": job.batch.per_device,
        "per_device_eval_batch_size": job.batch.per_device,
        "gradient_accumulation_steps": job.batch.accumulation,
        "gradient_checkpointing": config.gradient_checkpointing,
        "max_length": hyper.max_length,
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "seed": hyper.seed,
        "bf16": job.device.bf16,
        "use_cpu": job.device.name == "the CPU",
        "eval_strategy": "no",
        "save_strategy": "steps",
        "save_steps": config.save_steps or max(1, job.steps // SAVES),
        "save_total_limit": 2,
        "logging_steps": 1,
        "logging_first_step": True,
        "ddp_find_unused_parameters": False,
        "report_to": "none",
        "disable_tqdm": True,
    }


def adapter_of(hyper: Hyper) -> Any:
    """PEFT's configuration of the adapter."""
    from peft import LoraConfig

    names = [name.strip() for name in hyper.lora_targets.split(",")]
    return LoraConfig(
        r=hyper.lora_r, lora_alpha=hyper.lora_alpha, lora_dropout=hyper.lora_dropout, bias="none",
        target_modules=hyper.lora_targets if hyper.lora_targets == "all-linear" else names,
        modules_to_save=list(hyper.lora_save) or None, task_type="CAUSAL_LM",
    )  # fmt: skip


def run(trainer: Any, job: Job, what: str, *, resume: Path | None, measured: Sequence[str]) -> Result:
    """Train to the end, from the checkpoint `resume` if there is one, and evaluate on the test rows if there are any.

    `measured` are the metrics wanted beside the loss, as TRL logs them.
    """
    from transformers.trainer_callback import PrinterCallback

    started = time.monotonic()
    if job.device.bf16 and not job.config.full:
        widen(trainer.model)
    trainer.remove_callback(PrinterCallback)
    if job.device.rank == 0:
        trainer.add_callback(_bar(job.steps, what))
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    test = trainer.evaluate() if trainer.eval_dataset is not None else {}
    last = logs[-max(1, len(logs) // 10) :]
    return Result(
        int(trainer.state.global_step), _mean(logs[:1], "loss"), _mean(last, "loss"),
        {_short(name): _mean(last, name) for name in measured},
        {_short(name): round(float(test[f"eval_{name}"]), 4) for name in ("loss", *measured) if f"eval_{name}" in test},
        round(time.monotonic() - started, 1),
    )  # fmt: skip


def widen(model: Any) -> None:
    """Keep what is trained of a half-precision model in float32: in bfloat16 most small steps would round to nothing.

    The adapter is so already; modules that are trained whole beside it are not. Autocast computes in bfloat16.
    """
    import torch

    for parameter in model.parameters():
        if parameter.requires_grad and parameter.dtype in (torch.bfloat16, torch.float16):
            parameter.data = parameter.data.float()


def _mean(entries: Sequence[Mapping[str, Any]], name: str) -> float:
    values = [float(entry[name]) for entry in entries if name in entry]
    return round(sum(values) / len(values), 4) if values else math.nan


def _short(name: str) -> str:
    return {"rewards/margins": "margin", "rewards/accuracies": "accuracy", "mean_token_accuracy": "token_accuracy"}.get(
        name, name
    )


def _bar(steps: int, what: str) -> Any:
    """A callback that shows how far training is, how fast it goes and how long it takes, and the loss."""
    from transformers import TrainerCallback

    class Bar(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.bar = progress(steps, what, "step", initial=state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.bar.update(state.global_step - self.bar.n)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            shown = {_short(k): f"{float(v):.3f}" for k, v in (logs or {}).items() if k in ("loss", "rewards/margins")}
            if shown and hasattr(self, "bar"):
                self.bar.set_postfix(shown, refresh=False)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.bar.close()

    return Bar()
