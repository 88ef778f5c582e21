"""vLLM in this process: continuous batching over all open requests, on GPUs or with vLLM's CPU build.

Knows vLLM 0.20 to 0.33. More GPUs or machines are vLLM's own business (`--engine-arg tensor_parallel_size=2`); with
data parallel ranks an episode sticks to its rank, so that its prefix cache hits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import hashlib
import itertools
import logging
import os
import sys
import typing
from typing import Any

from pairgen.engines import Completion, EngineOptions, Request
from pairgen.engines.adapter import Adapter, cannot_apply, find_adapter, rank_for_vllm
from pairgen.engines.arguments import loose, read, typed
from pairgen.engines.chat import Chat, cannot_load, check_folder, check_room, check_start, context_of, load_chat
from pairgen.engines.guard import Guard
from pairgen.engines.precision import cpu_likes_bfloat16
from pairgen.engines.select import cpu_vllm
from pairgen.errors import EngineError, RequestError, UsageProblem

MOST_SEQUENCES = 1024  # more open requests than this wait their turn inside vLLM
GPU_BATCHED_TOKENS = 16_384
GPU_MEMORY = 0.9  # of a GPU's memory, for all engines on it together
LORA_RANKS = (8, 16, 32, 64, 128, 256)  # where vLLM does not say which it takes
CPU_CONTEXT = 8_192
CPU_BATCHED_TOKENS = 4_096
CPU_CACHE_GIB = "2"
SHUTDOWN_S = 10.0


class VllmEngine:
    """An AsyncLLM and the tokenizer in front of it."""

    name = "vllm"

    def __init__(self, options: EngineOptions) -> None:
        if "model" in read("--engine-arg", options.engine_args):
            raise UsageProblem("--engine-arg model: give the model as --model instead.")
        self.model = options.model
        self._options = options
        self._template = loose("--chat-template-kwargs", options.chat_template_kwargs)
        self._count = itertools.count()
        self._llm: Any = None
        self._chat: Chat | None = None
        self._guard: Guard | None = None
        self._limit = 0
        self._ranks = 1
        self._adapter: Adapter | None = None
        self._lora: Any = None

    async def start(self) -> None:
        """Load the model; the event loop stands still meanwhile. Raises EngineError; UsageProblem for an argument."""
        check_folder(self.model)
        on_cpu = cpu_vllm()
        _quieten(on_cpu)
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        fields = {f.name for f in dataclasses.fields(AsyncEngineArgs)}
        given = typed("--engine-arg", self._options.engine_args, _hints(AsyncEngineArgs))
        self._adapter = await asyncio.to_thread(find_adapter, self._options.lora) if self._options.lora else None
        self._chat, context = await asyncio.to_thread(self._look, given)
        check_start(self.model, context, self._options.max_model_len, self._options.max_tokens)
        chosen = {k: v for k, v in self._defaults(on_cpu, context).items() if k in fields} | given
        self._guard = self._guard or Guard()
        try:
            args = AsyncEngineArgs(model=self.model, **chosen)
            self._llm = AsyncLLM.from_engine_args(args)
        except Exception as error:
            raise _cannot_start(self.model, error) from error
        if self._adapter:
            await self._put_on(self._adapter)
        self._limit = self._llm.vllm_config.model_config.max_model_len
        self._ranks = self._llm.vllm_config.parallel_config.data_parallel_size
        check_start(self.model, None, self._limit, self._options.max_tokens)

    async def generate(self, request: Request) -> Completion:
        """One reply; a task that is cancelled takes its request out of the batch."""
        if self._llm is None or self._chat is None:
            raise EngineError("The engine is not started.")
        ids = await self._chat.to_ids(request)
        check_room(self.model, len(ids), request.sampling, self._limit)
        try:
            output = await asyncio.wait_for(
                self._run(ids, request, self._chat.ends_of(request.sampling)), self._options.timeout_s
            )
        except asyncio.TimeoutError as error:
            raise RequestError("timeout", f"no reply within {self._options.timeout_s:g} seconds") from error
        except (EngineError, RequestError):
            raise
        except Exception as error:
            raise self._failure(error) from error
        return _completion(output, request, ids, self._chat)

    async def _put_on(self, adapter: Adapter) -> None:
        """Load the adapter now, so that one that does not fit is found before anything is played."""
        from vllm.lora.request import LoRARequest

        self._lora = LoRARequest(adapter.name, 1, str(adapter.folder))
        try:
            await self._llm.add_lora(self._lora)
        except Exception as error:
            await self.close()
            raise cannot_apply(adapter, self.model, error) from error

    async def close(self) -> None:
        llm, self._llm, self._chat = self._llm, None, None
        guard, self._guard = self._guard, None
        if llm is not None:
            logging.getLogger("vllm").setLevel(logging.CRITICAL)  # it calls its own orderly end an engine's death
            await asyncio.to_thread(llm.shutdown, SHUTDOWN_S)
            del llm
            gc.collect()  # its finalizer must not wait for the interpreter's end, when half of vLLM is gone
        if guard is not None:
            guard.dismiss()

    def _look(self, given: dict[str, Any]) -> tuple[Chat, int | None]:
        """The tokenizer, and the context length that the model's configuration states."""
        from transformers import AutoConfig

        trust = bool(given.get("trust_remote_code", False))
        try:
            revision = given.get("revision", self._options.revision)
            config = AutoConfig.from_pretrained(self.model, revision=revision, trust_remote_code=trust)
        except Exception as error:
            raise cannot_load(self.model, error) from error
        tokenizer = given.get("tokenizer") or self.model
        if "tokenizer_revision" in given or tokenizer != self.model:
            revision = given.get("tokenizer_revision")
        chat = load_chat(tokenizer, revision, self._template, trust_remote_code=trust)
        return chat, context_of(config)

    def _defaults(self, on_cpu: bool, context: int | None) -> dict[str, Any]:
        options = self._options
        chosen: dict[str, Any] = {
            "revision": options.revision, "tokenizer_revision": options.revision, "dtype": options.dtype,
            "max_model_len": options.max_model_len, "seed": options.seed, "generation_config": "vllm",
            "max_num_seqs": max(1, min(options.concurrency, MOST_SEQUENCES)), "enable_prefix_caching": True,
            "disable_log_stats": True, "enable_log_requests": False, "use_tqdm_on_load": False,
        }  # fmt: skip
        if on_cpu:
            chosen["enforce_eager"] = True
            if options.dtype == "auto" and not cpu_likes_bfloat16():
                chosen["dtype"] = "float32"
            if options.max_model_len is None and context is not None:
                chosen["max_model_len"] = min(context, CPU_CONTEXT)
            # a prompt in parts has its seeded generator set back, which the CPU's cannot do: the engine would die
            length = chosen.get("max_model_len") or context
            if length is not None:
                chosen |= {"enable_chunked_prefill": False, "max_num_batched_tokens": max(length, CPU_BATCHED_TOKENS)}
        else:
            chosen["max_num_batched_tokens"] = GPU_BATCHED_TOKENS
            if options.memory_share < 1:
                chosen["gpu_memory_utilization"] = round(GPU_MEMORY * options.memory_share, 3)
        if self._adapter:
            # on a CPU vLLM reads "no adapter" as the last slot: a second one that stays empty keeps bare requests bare
            chosen.update(enable_lora=True, max_lora_rank=rank_for_vllm(self._adapter, _lora_ranks()))
            chosen["max_loras"] = 2 if on_cpu else 1
        return {k: v for k, v in chosen.items() if v is not None}

    async def _run(self, ids: list[int], request: Request, end_ids: tuple[int, ...]) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        params = SamplingParams(
            n=1, temperature=sampling.temperature, top_p=sampling.top_p, top_k=-1, min_p=0.0, repetition_penalty=1.0,
            presence_penalty=0.0, frequency_penalty=0.0, max_tokens=sampling.max_tokens,
            min_tokens=sampling.min_tokens, seed=sampling.seed, stop=list(sampling.stop), stop_token_ids=list(end_ids),
            skip_special_tokens=True, output_kind=RequestOutputKind.FINAL_ONLY, detokenize=_needs_text(request),
        )  # fmt: skip
        where: dict[str, Any] = {"data_parallel_rank": _rank(request.session, self._ranks)} if self._ranks > 1 else {}
        if self._lora is not None and not request.bare:
            where["lora_request"] = self._lora
        name = f"{request.session}-{next(self._count)}"
        outputs = [o async for o in self._llm.generate({"prompt_token_ids": ids}, params, name, **where)]
        return outputs[-1] if outputs else None

    def _failure(self, error: Exception) -> Exception:
        from vllm.v1.engine.exceptions import EngineDeadError

        if isinstance(error, EngineDeadError) or self._llm is None or self._llm.errored:
            return EngineError(
                "vLLM died while it was playing (its own message stands above): resume the run, with a lower "
                "--concurrency or --engine-arg gpu_memory_utilization=0.8 if it ran out of memory."
            )
        return RequestError("request_failed", f"{type(error).__name__}: {error}")


def _completion(output: Any, request: Request, ids: list[int], chat: Chat) -> Completion:
    if output is None or not output.outputs or output.outputs[0].finish_reason in ("abort", "error"):
        raise RequestError("request_failed", "vLLM gave the request up without a reply")
    said = output.outputs[0]
    own = chat.without_end(said.token_ids, chat.ends_of(request.sampling))
    return Completion(
        text=said.text if _needs_text(request) else chat.decode(own),
        finish_reason=said.finish_reason or "",
        prompt_tokens=len(ids),
        completion_tokens=len(said.token_ids),
        cached_tokens=-1 if output.num_cached_tokens is None else output.num_cached_tokens,
        token_ids=own,
    )


def _needs_text(request: Request) -> bool:
    """Whether vLLM must spell the reply token by token: to find a stop string, or to know what stands before it.

    Otherwise that work is spared, and the whole reply decoded at its end, as the other engines do.
    """
    return bool(request.sampling.stop) or request.go_on


def _rank(session: str, ranks: int) -> int:
    return int.from_bytes(hashlib.blake2b(session.encode(), digest_size=8).digest(), "big") % ranks


def _lora_ranks() -> tuple[int, ...]:
    from vllm.config import lora

    return typing.get_args(getattr(lora, "MaxLoRARanks", None)) or LORA_RANKS


def _quieten(on_cpu: bool) -> None:
    """What vLLM reads from the environment when it is imported; what the user has set stays."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    if sys.version_info < (3, 12):  # torch imports setuptools, which fails where distutils was loaded before it
        os.environ.setdefault("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    if on_cpu:
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", CPU_CACHE_GIB)
    else:  # the look for a GPU leaves CUDA in a state that no fork may use, and vLLM takes it for untouched
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


def _hints(args_class: Any) -> dict[str, Any]:
    """The type of each engine argument, None where its annotation cannot be resolved."""
    names = [f.name for f in dataclasses.fields(args_class) if not f.name.startswith("_")]
    hints: dict[str, Any] = {}
    for owner in reversed(args_class.__mro__[:-1]):
        space = vars(__import__(owner.__module__, fromlist=["_"]))
        for name, hint in vars(owner).get("__annotations__", {}).items():
            hints[name] = _resolve(hint, space)
    return {name: hints.get(name) for name in names}


def _resolve(hint: Any, space: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return typing.get_type_hints(type("_", (), {"__annotations__": {"x": hint}}), globalns=space)["x"]
    except Exception:  # a name that is only imported for type checkers
        return None


def _cannot_start(model: str, error: Exception) -> EngineError:
    said = " ".join(str(error).split())
    lower = said.lower()
    if "max seq len" in lower or "kv cache" in lower or "available memory" in lower:
        fix = "lower --max-model-len, or give it more memory (VLLM_CPU_KVCACHE_SPACE in GiB on a CPU)"
    elif "memory" in lower:
        fix = "free the GPU's memory, or give --engine-arg gpu_memory_utilization=0.8"
    else:
        fix = "what it printed above says why; --engine transformers plays without vLLM"
    return EngineError(f"vLLM cannot serve {model} ({type(error).__name__}: {said[:400]}): {fix}.")
