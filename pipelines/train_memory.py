"""What a training will hold in the memory of one device, in bytes, from the shapes of the model. Pure arithmetic.

    weights      parameters x bytes a weight; a full DPO keeps no second copy, its reference is computed beforehand
    trained      16 bytes a trained parameter: itself, its gradient and Adam's two moments, all in 32 bits;
                 12 where the weights themselves are trained in 32 bits, since they are counted already
    activations  tokens x (what every layer keeps + what one layer holds while it is computed); without gradient
                 checkpointing every layer keeps all it held. DPO puts two sequences a row through the model.
    logits       one tile of the size in which TRL computes them, three times: never tokens x vocabulary
Attention is taken to hold no tokens x tokens matrix (PyTorch's own does not). Expect the truth within a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pairgen.errors import UsageProblem

ROOM = 0.9
"""The share of a device's memory that a plan may fill: the rest is for fragments and kernels."""
TILE = (4096, 32_768)
"""The tokens and vocabulary entries of which TRL (1.16) has logits at once."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model: all parameters, in + out of each linear layer summed up, and parameters by module name."""

    parameters: int
    linear: int
    hidden: int
    layers: int
    intermediate: int
    vocabulary: int
    modules: Mapping[str, int]


class Memory(NamedTuple):
    """Bytes on one device."""

    weights: int
    trained: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        return sum(self)


class Batch(NamedTuple):
    """How an effective batch is made of what one device holds at once."""

    per_device: int
    accumulation: int
    world: int


@dataclass(frozen=True, slots=True)
class Load:
    """What is trained, and how: `rank` 0 is all weights, `saved` modules trained whole, `sides` sequences a row."""

    weight_bytes: int
    rank: int
    saved: tuple[str, ...]
    max_length: int
    sides: int
    checkpointing: bool


def expect(shape: Shape, load: Load, rows: int) -> Memory:
    """The memory for `rows` rows at once, each `max_length` tokens long."""
    compute = 2 if load.weight_bytes == 2 else 4
    tokens = rows * load.sides * load.max_length
    if load.rank:
        trained = 16 * (load.rank * shape.linear + sum(shape.modules.get(name, 0) for name in load.saved))
    else:
        trained = 12 * shape.parameters
    layer = compute * (16 * shape.hidden + 5 * shape.intermediate) + 8 * shape.hidden
    kept = shape.layers * (compute * shape.hidden if load.checkpointing else layer)
    logits = 3 * compute * min(tokens, TILE[0]) * min(shape.vocabulary, TILE[1])
    return Memory(load.weight_bytes * shape.parameters, trained, tokens * (kept + layer), logits)


def plan_batch(batch_size: int, world: int, per_device: int, shape: Shape | None, load: Load, room: int) -> Batch:
    """Split `batch_size` over devices: the largest share that fits into `room` bytes, or `per_device` where given.

    Without a shape one row at a time. Raises UsageProblem where it cannot be split evenly.
    """
    if batch_size % world:
        raise UsageProblem(
            f"--batch-size {batch_size} cannot be split over {world} devices: give a multiple of {world}, "
            "or take fewer devices."
        )
    share = batch_size // world
    if per_device:
        if share % per_device:
            fitting = [n for n in range(1, share + 1) if share % n == 0]
            raise UsageProblem(
                f"--per-device-batch {per_device} does not divide the {share} rows that --batch-size {batch_size} "
                f"gives each of {world} devices: give one of {', '.join(map(str, fitting))}."
            )
        return Batch(per_device, share // per_device, world)
    fitting = [n for n in range(1, share + 1) if share % n == 0]
    best = 1
    if shape is not None:
        best = max((n for n in fitting if expect(shape, load, n).total <= ROOM * room), default=1)
    return Batch(best, share // best, world)


def memory_line(memory: Memory, available: int, device: str) -> str:
    """The expectation as a sentence, against what the device has."""
    parts = "  ".join(f"{name} {size / 2**30:.1f}" for name, size in memory._asdict().items())
    return f"expected memory: {memory.total / 2**30:.1f} GiB ({parts}) of {available / 2**30:.1f} GiB on {device}"
