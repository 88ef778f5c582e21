"""transformers in this process: for a CPU, Apple's GPU or one GPU, where vLLM is not to be had.

Requests are batched continuously and prompts computed only from where they differ (`batch.py`); models with other
layers than ordinary attention are batched by `generate` (`static_batch.py`). A request with a seed draws from its own
random numbers: its reply does not depend on what is batched with it, up to rounding, which differs with the shape
of a batch and can turn a near tie.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pairgen.engines import Completion, EngineOptions, Request
from pairgen.engines.adapter import cannot_apply, find_adapter
from pairgen.engines.arguments import loose, typed
from pairgen.engines.chat import Chat, cannot_load, check_folder, check_room, check_start, context_of, load_chat
from pairgen.engines.job import Job
from pairgen.engines.precision import cpu_likes_bfloat16
from pairgen.errors import EngineError, RequestError, UsageProblem

MOST_ROWS = {"cpu": 64, "mps": 32, "cuda": 256}
DTYPES = ("auto", "float32", "bfloat16", "float16")
ARGUMENTS = {
    "batch_size": int, "device": str, "trust_remote_code": bool, "attn_implementation": str, "threads": int
}  # fmt: skip
PREFIX_BYTES = 2 << 30


class TransformersEngine:
    """A causal language model and one thread that computes with it."""

    name = "transformers"

    def __init__(self, options: EngineOptions) -> None:
        self.model = options.model
        self._options = options
        self._given = typed("--engine-arg", options.engine_args, ARGUMENTS)
        self._template = loose("--chat-template-kwargs", options.chat_template_kwargs)
        if options.dtype not in DTYPES:
            raise UsageProblem(f"--dtype {options.dtype}: the engine transformers takes {', '.join(DTYPES)}.")
        self._thread: ThreadPoolExecutor | None = None
        self._wake = asyncio.Event()
        self._server: asyncio.Task[None] | None = None
        self._open: set[Job] = set()
        self._chat: Chat | None = None
        self._batch: Any = None
        self._limit: int | None = None

    async def start(self) -> None:
        """Load the model; raises EngineError with the fix."""
        check_folder(self.model)
        # threads that spin while they wait take the processor from the games
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        self._wake = asyncio.Event()
        # one thread for all: OpenMP keeps a team of workers for every thread that computes
        self._thread = ThreadPoolExecutor(1, "pairgen-transformers")
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._load)
        except BaseException:
            await self.close()
            raise
        self._server = asyncio.create_task(self._serve(self._thread))

    async def generate(self, request: Request) -> Completion:
        """One reply; a task that is cancelled takes its request out of the batch."""
        if self._chat is None or self._server is None:
            raise EngineError("The engine is not started.")
        ids = await self._chat.to_ids(request)
        check_room(self.model, len(ids), request.sampling, self._limit)
        job = Job(ids, request.sampling, asyncio.get_running_loop().create_future())
        self._batch.add(job)
        self._open.add(job)
        self._wake.set()
        try:
            completion: Completion = await asyncio.wait_for(job.reply, self._options.timeout_s)
            return completion
        except asyncio.TimeoutError as error:
            raise RequestError("timeout", f"no reply within {self._options.timeout_s:g} seconds") from error
        finally:
            self._open.discard(job)

    async def close(self) -> None:
        if self._server is not None:
            self._server.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._server
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown)
        self._server = self._thread = self._batch = self._chat = None

    async def _serve(self, thread: ThreadPoolExecutor) -> None:
        """Step the batch whenever there is something to do; should it break, every open request gets an EngineError."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._batch.busy:
                    for job in await loop.run_in_executor(thread, self._batch.step):
                        if not job.given_up:
                            job.reply.set_result(job.done)
        except Exception as error:
            self._server = None
            for job in [j for j in self._open if not j.given_up]:
                job.reply.set_exception(_broke(self.model, error))

    def _load(self) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        from pairgen.engines.batch import ContinuousBatch
        from pairgen.engines.grouped_attention import register
        from pairgen.engines.static_batch import StaticBatch

        options, trust = self._options, bool(self._given.get("trust_remote_code", False))
        self._chat = load_chat(self.model, options.revision, self._template, trust_remote_code=trust)
        if "threads" in self._given:
            torch.set_num_threads(self._given["threads"])
        device = self._given.get("device") or _device(torch)
        wanted = {"trust_remote_code": trust, "revision": options.revision}
        attention = self._given.get("attn_implementation")
        try:
            with _no_bars():
                model = AutoModelForCausalLM.from_pretrained(
                    self.model, dtype=_dtype(torch, options.dtype, device), attn_implementation=attention, **wanted
                )
                model = model.to(device).eval()
                if options.lora:
                    model = _merged(model, self.model, options.lora)
        except EngineError:
            raise
        except Exception as error:
            raise cannot_load(self.model, error) from error
        context = context_of(model.config)
        check_start(self.model, context, options.max_model_len, options.max_tokens)
        self._limit = options.max_model_len or context
        kind = torch.device(device).type
        rows = self._given.get("batch_size") or max(1, min(options.concurrency, MOST_ROWS.get(kind, 32)))
        free = int(_free_bytes(torch, kind) * options.memory_share)
        tokens = max(1, free // 2 // _bytes_per_token(model))
        if ContinuousBatch.fits(model):
            if kind == "cpu" and model.config._attn_implementation == "sdpa" and (grouped := register()):
                model.set_attn_implementation(grouped)
            memory = min(free // 4, PREFIX_BYTES)
            self._batch = ContinuousBatch(model, self._chat, rows=rows, tokens=tokens, memory=memory)
        else:
            self._batch = StaticBatch(model, self._chat, rows=rows, tokens=tokens)


def _merged(model: Any, name: str, lora: str) -> Any:
    """The model with the adapter in its weights, so that its layers are those of any other model."""
    from peft import PeftModel

    adapter = find_adapter(lora)
    try:
        return PeftModel.from_pretrained(model, str(adapter.folder)).merge_and_unload().eval()
    except Exception as error:
        raise cannot_apply(adapter, name, error) from error


def _device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _dtype(torch: Any, asked: str, device: str) -> Any:
    if asked != "auto":
        return getattr(torch, asked)
    return torch.float32 if device == "cpu" and not cpu_likes_bfloat16() else "auto"


def _free_bytes(torch: Any, kind: str) -> int:
    if kind == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # not said on this platform
        return 8 << 30


def _bytes_per_token(model: Any) -> int:
    """Of the attention states, at most."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * int(config.num_hidden_layers) * int(heads) * int(width) * int(model.dtype.itemsize)


@contextlib.contextmanager
def _no_bars() -> Any:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _broke(model: str, error: Exception) -> EngineError:
    if "out of memory" in str(error).lower() or isinstance(error, MemoryError):
        return EngineError(f"{model} ran out of memory: resume the run with --engine-arg batch_size=4.")
    return EngineError(
        f"{model} failed while it was playing ({type(error).__name__}: {str(error).splitlines()[:1]}): resume the run, "
        f"with --engine-arg batch_size=1 if it fails again."
    )
