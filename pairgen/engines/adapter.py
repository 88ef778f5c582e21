"""A LoRA adapter as peft saves it: found, read, and what of it vLLM can serve. Knows no engine and loads no weights."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.engines.chat import cannot_load
from pairgen.errors import EngineError

CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")
VLLM_REFUSES = ("modules_to_save", "use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication")


class Adapter(NamedTuple):
    """An adapter's folder, its name, its largest rank, the model that it says it was made for, and the rest it says."""

    folder: Path
    name: str
    rank: int
    base: str
    config: dict[str, Any]

    def looks_made_for(self, model: str) -> bool:
        """Whether the base model has the name of `model`; paths differ between machines, so the last parts count."""
        return not self.base or _last(self.base) == _last(model)


def find_adapter(lora: str) -> Adapter:
    """The adapter of a folder or a Hub id, which is fetched. Raises EngineError with the fix."""
    folder = _folder(lora)
    path = folder / CONFIG
    if not path.is_file():
        raise EngineError(f"--lora {lora} holds no adapter (no {CONFIG}): give the folder that peft saved it into.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        kind, ranks = config.get("peft_type"), [config.get("r"), *(config.get("rank_pattern") or {}).values()]
    except (OSError, ValueError, AttributeError) as error:
        raise EngineError(
            f"{path} cannot be read ({error}): save the adapter again with peft's save_pretrained."
        ) from None
    if kind != "LORA" or not all(type(rank) is int and rank > 0 for rank in ranks):
        raise EngineError(
            f"--lora {lora} is no LoRA adapter (peft_type {kind}, rank {config.get('r')}): merge it into its base "
            "model and give the merged folder as --model."
        )
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise EngineError(f"--lora {lora} has no weights ({WEIGHTS[0]}): copy the whole folder of the adapter.")
    base = str(config.get("base_model_name_or_path") or "")
    return Adapter(folder, _last(str(folder) if Path(lora).is_dir() else lora), max(ranks), base, config)


def rank_for_vllm(adapter: Adapter, allowed: tuple[int, ...]) -> int:
    """The smallest `max_lora_rank` that holds the adapter. Raises EngineError for what vLLM cannot serve unmerged."""
    odd = [name for name in VLLM_REFUSES if adapter.config.get(name)]
    if odd:
        raise EngineError(f"vLLM cannot serve the adapter {adapter.folder} ({', '.join(odd)}): {_merge(adapter)}.")
    fitting = [rank for rank in sorted(allowed) if rank >= adapter.rank]
    if not fitting:
        raise EngineError(
            f"vLLM serves adapters up to rank {max(allowed)}, and {adapter.folder} has {adapter.rank}: "
            f"{_merge(adapter)}."
        )
    return fitting[0]


def cannot_apply(adapter: Adapter, model: str, error: BaseException) -> EngineError:
    """Model and adapter do not go together."""
    said = " ".join(str(error).split())[:300]
    return EngineError(
        f"The adapter {adapter.folder} cannot be applied to {model} ({type(error).__name__}: {said}): give the model "
        f"that it was made for as --model{f' ({adapter.base})' if adapter.base else ''}, or {_merge(adapter)}."
    )


def _merge(adapter: Adapter) -> str:
    return (
        f"merge it (peft: AutoPeftModelForCausalLM.from_pretrained({str(adapter.folder)!r}).merge_and_unload()"
        ".save_pretrained(FOLDER), with the tokenizer's files beside it) and give FOLDER as --model"
    )


def _folder(lora: str) -> Path:
    path = Path(lora).expanduser()
    if path.is_dir():
        return path
    if path.exists() or lora.startswith(("/", ".", "~")) or lora.count("/") != 1:
        raise EngineError(f"There is no adapter folder {lora}: check the path, or give a Hub id such as owner/adapter.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(lora, allow_patterns=["adapter_*"]))
    except Exception as error:
        raise cannot_load(lora, error) from error


def _last(name: str) -> str:
    return ([part for part in re.split(r"[/\\]", name) if part] or [""])[-1]
