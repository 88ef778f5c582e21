"""The model of a training: its tokenizer, its sizes before anything is loaded, and the device that will hold it."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from pairgen.engines.chat import cannot_load, check_folder, load_chat
from pairgen.errors import PairgenError, UsageProblem
from pipelines.train_memory import Shape

DTYPES = ("auto", "bfloat16", "float32")


class Device(NamedTuple):
    """What trains: how many devices share the work, the memory of one in bytes, and whether it computes in bfloat16."""

    name: str
    world: int
    rank: int
    memory: int
    bf16: bool


def check_installed() -> None:
    """Raise PairgenError unless what trains is installed."""
    try:
        import accelerate  # noqa: F401
        import peft  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise PairgenError(
            f'Training needs {error.name or "trl"}, which is not installed: pip install "pairgen[train]".'
        ) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the bars, notes and warnings of the libraries, and as they were afterwards."""
    import datasets
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    bars = datasets.are_progress_bars_disabled()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
        if not bars:
            datasets.enable_progress_bars()


def rank() -> int:
    """Which of the processes of a launcher this one is; 0 prints and writes."""
    return int(os.environ.get("RANK", "0"))


def find_device() -> Device:
    """The device of this process. Raises UsageProblem where several GPUs are visible and nothing launches on them."""
    import torch

    world = int(os.environ.get("WORLD_SIZE", "1"))
    if torch.cuda.is_available() and os.environ.get("ACCELERATE_USE_CPU", "").lower() not in ("1", "true", "yes"):
        if torch.cuda.device_count() > 1 and "WORLD_SIZE" not in os.environ:
            raise UsageProblem(
                f"{torch.cuda.device_count()} GPUs are visible: start with accelerate launch -m pairgen.cli (then the "
                "same words) to use them all, or with CUDA_VISIBLE_DEVICES=0 to use one."
            )
        index = int(os.environ.get("LOCAL_RANK", "0"))
        memory = torch.cuda.get_device_properties(index).total_memory
        return Device(torch.cuda.get_device_name(index), world, rank(), memory, torch.cuda.is_bf16_supported())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // world
    return Device("the CPU", world, rank(), memory, False)


def weights_dtype(asked: str, device: Device, *, full: bool) -> str:
    """How weights lie in memory: in 32 bits where all are trained (an update in 16 would be lost), else as computed."""
    if asked != "auto":
        return asked
    return "bfloat16" if device.bf16 and not full else "float32"


def load_tokenizer(model: str, revision: str | None) -> Any:
    """The tokenizer of a model folder or Hub name. Raises EngineError where there is none, or no chat template."""
    if not model:
        raise UsageProblem("--model is missing: give a checkpoint folder or a Hub id.")
    return load_chat(model, revision).tokenizer


def shape_of(model: str, revision: str | None) -> Shape | None:
    """The sizes of a model from its configuration alone: no weight is read. None where it cannot be built that way."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    check_folder(model)
    try:
        config = AutoConfig.from_pretrained(model, revision=revision)
    except Exception as error:
        raise cannot_load(model, error) from error
    try:
        with torch.device("meta"):
            built = AutoModelForCausalLM.from_config(config)
    except Exception:  # an architecture that needs its weights, or code of its own
        return None
    text = config.get_text_config()
    head = built.get_output_embeddings()
    linear = [m for m in built.modules() if isinstance(m, torch.nn.Linear) and m is not head]
    modules: dict[str, int] = {}
    for name, module in built.named_modules():
        last = name.rpartition(".")[2]
        modules[last] = modules.get(last, 0) + sum(p.numel() for p in module.parameters(recurse=False))
    hidden = int(text.hidden_size)
    return Shape(
        parameters=sum(p.numel() for p in built.parameters()),
        linear=sum(m.in_features + m.out_features for m in linear),
        hidden=hidden,
        layers=int(text.num_hidden_layers),
        intermediate=int(getattr(text, "intermediate_size", None) or 4 * hidden),
        vocabulary=int(text.vocab_size),
        modules=modules,
    )


def load_model(model: str, revision: str | None, dtype: str) -> Any:
    """The model with its weights. Raises EngineError with the fix."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(model, revision=revision, dtype=getattr(torch, dtype))
    except Exception as error:
        raise cannot_load(model, error) from error
