"""Who speaks in a rollout: the learner's engine, and that of its partner where there is one, as a single engine.

Knows how the two are told apart and share a device; knows no game and no episode.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pairgen.console import say
from pairgen.engines import Completion, Engine, EngineOptions, Request
from pairgen.engines.select import make_engine, resolve
from pipelines.plan import label_of
from pipelines.rollout_config import RolloutConfig, partner_of
from pipelines.supervise import Supervised

LEAST_SHARE = 0.25
"""Of the memory that two models share, the part that the smaller one gets at least."""


class Labels(NamedTuple):
    """What learner and partner are called in records and folders; never the same name. `partner` is "" without one."""

    learner: str
    partner: str


def labels_of(config: RolloutConfig) -> Labels:
    """The last part of each model's name; a learner with an adapter is `MODEL+ADAPTER`."""
    learner = label_of(config.model or "model") + (f"+{label_of(config.lora)}" if config.lora else "")
    model = partner_of(config.partner).model
    partner = label_of(model) if model else ""
    return Labels(learner, f"{partner}.partner" if partner == learner else partner)


class Speakers:
    """Two engines as one: requests for the bare model go to the partner's, all others to the learner's."""

    def __init__(self, learner: Engine, partner: Engine):
        self._learner, self._partner = learner, partner

    @property
    def name(self) -> str:
        names = dict.fromkeys((self._learner.name, self._partner.name))
        return " and ".join(names)

    @property
    def model(self) -> str:
        return self._learner.model

    async def start(self) -> None:
        """One after the other: an engine measures what memory is free when it starts."""
        await self._learner.start()
        try:
            await self._partner.start()
        except BaseException:
            await self._learner.close()
            raise

    async def generate(self, request: Request) -> Completion:
        return await (self._partner if request.bare else self._learner).generate(request)

    async def close(self) -> None:
        try:
            await self._learner.close()
        finally:
            await self._partner.close()


def make_speakers(config: RolloutConfig, on_restart: Callable[[str], None]) -> Engine:
    """The engine or engines that the configuration asks for, each supervised on its own; nothing is loaded yet."""
    engines = [
        Supervised(make_engine(options), config.restarts, on_restart) for options in speakers_options(config) if options
    ]
    return Speakers(*engines) if len(engines) > 1 else engines[0]


def speakers_options(config: RolloutConfig) -> tuple[EngineOptions, EngineOptions | None]:
    """The learner's engine, and the partner's where the learner's cannot speak for it as well.

    One engine serves both where they are the same model; with an adapter on the learner only vLLM can leave it out.
    """
    learner = engine_options(config)
    partner = partner_of(config.partner)
    if not partner.model:
        return learner, None
    if partner.url:
        there = dataclasses.replace(
            learner, name="openai", model=partner.model, base_urls=(partner.url,), revision=None, lora=None,
            engine_args=(), chat_template_kwargs=(),
        )  # fmt: skip
        return learner, there
    same = _same(config.model, partner.model)
    kind = resolve(config.engine, config.base_url)
    if same and (not config.lora or kind == "vllm"):
        return learner, None
    here = dataclasses.replace(
        learner, model=partner.model, lora=None, revision=config.revision if same else None
    )  # fmt: skip
    if kind not in ("vllm", "transformers"):
        return learner, here
    share = _share(config.model, partner.model)
    return dataclasses.replace(learner, memory_share=share), dataclasses.replace(here, memory_share=1 - share)


def engine_options(config: RolloutConfig) -> EngineOptions:
    """The part of the configuration that the learner's engine needs."""
    return EngineOptions(
        name=config.engine, model=config.model, revision=config.revision, base_urls=config.base_url,
        concurrency=config.concurrency, max_model_len=config.max_model_len, dtype=config.dtype,
        timeout_s=config.timeout, max_tokens=config.max_tokens, seed=config.seed, engine_args=config.engine_arg,
        chat_template_kwargs=config.chat_template_kwargs, lora=config.lora,
    )  # fmt: skip


def notice_adapter(config: RolloutConfig) -> None:
    """Say so where the adapter names another base model than the one that it is put on. Raises EngineError."""
    from pairgen.engines.adapter import find_adapter

    if config.lora:
        adapter = find_adapter(config.lora)
        if not adapter.looks_made_for(config.model):
            say(f"the adapter {config.lora} says that it was made for {adapter.base}; it is put on {config.model}")


def _same(model: str, other: str) -> bool:
    if model == other:
        return True
    paths = [Path(name).expanduser() for name in (model, other)]
    return all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _share(learner: str, partner: str) -> float:
    """The learner's part of the memory: as its weights are to the partner's, or half where either is not known."""
    sizes = [_weights(learner), _weights(partner)]
    if not all(sizes):
        return 0.5
    return round(min(1 - LEAST_SHARE, max(LEAST_SHARE, sizes[0] / sum(sizes))), 3)


def _weights(model: str) -> int:
    """Bytes of a model's weight files, 0 where they are not here yet."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = _cached(model)
    files: Sequence[Path] = [*folder.glob("*.safetensors")] or [*folder.glob("*.bin")]
    return sum(file.stat().st_size for file in files)


def _cached(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except Exception:  # no such id, or not fetched yet
        return Path("/nonexistent")
