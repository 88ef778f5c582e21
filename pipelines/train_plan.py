"""What a training is going to take, said before anything is loaded: memory on a device, and how a batch is split."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from pipelines.recipes import Hyper
from pipelines.train import Job
from pipelines.train_config import TrainConfig
from pipelines.train_memory import ROOM, Load, expect, memory_line, plan_batch
from pipelines.train_model import Device, shape_of, weights_dtype


def plan(
    config: TrainConfig,
    hyper: Hyper,
    device: Device,
    load: Load,
    checkpoints: Path,
    rows: int,
    tell: Callable[[str], None],
) -> Job:
    """The job, with its batch; `tell` is told memory and batch, and what to do where it will hardly fit.

    `load` need not know yet what a weight takes.
    """
    dtype = weights_dtype(config.dtype, device, full=config.full)
    load = dataclasses.replace(load, weight_bytes=2 if dtype == "bfloat16" else 4)
    shape = shape_of(config.model, config.revision)
    batch = plan_batch(hyper.batch_size, device.world, config.per_device_batch, shape, load, device.memory)
    job = Job(config, hyper, batch, device, checkpoints, rows)
    if shape is None:
        tell(f"expected memory: not known, since {config.model} cannot be measured without loading it")
    else:
        memory = expect(shape, load, batch.per_device)
        tell(memory_line(memory, device.memory, device.name))
        if memory.total > ROOM * device.memory:
            tell(f"warning: that hardly fits; {_relief(config, hyper, batch.per_device)}")
    tell(
        f"{rows} rows, {job.steps} steps of {hyper.batch_size} (= {batch.per_device} a device x {batch.accumulation} "
        f"accumulated x {batch.world} device{'s' * (batch.world > 1)}), up to {hyper.max_length} tokens, {dtype}"
    )
    return job


def _relief(config: TrainConfig, hyper: Hyper, per_device: int) -> str:
    ways = []
    if config.full:
        ways.append("leave out --full to train an adapter")
    if hyper.lora_save and not config.full:
        ways.append("give --lora-save none")
    if not config.gradient_checkpointing:
        ways.append("leave out --no-gradient-checkpointing")
    if per_device > 1:
        ways.append("lower --per-device-batch")
    return ", ".join([*ways, f"lower --max-length {hyper.max_length}", "or take a larger or another GPU"])
