"""What an engine is: one coroutine from a request to a completion. Knows nothing of games or files.

The engines themselves live beside this file, one a module, and are imported only when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pairgen.records import Messages


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn, every field explicit. `temperature` 0 is greedy; `max_tokens` counts new tokens.

    Up to `min_tokens` new tokens the model cannot end its turn, nor leave it by another special token.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 300
    seed: int | None = None
    stop: tuple[str, ...] = ()
    min_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One reply to be made. `session` is equal for all requests of an episode, so that its prefix cache can hit.

    `bare` asks for the model without its adapter: what a partner says that shares the learner's engine (vLLM's alone
    can serve both).
    With `go_on` the last message is the assistant's own, and the reply is what it says on from that message's end.
    """

    messages: Messages
    sampling: Sampling
    session: str
    bare: bool = False
    go_on: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply. Token counts are in tokens of the model, -1 where the engine does not say.

    `finish_reason` is "stop" (the model ended its turn or a stop string was met), "length", or the engine's own word.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = -1
    token_ids: tuple[int, ...] = ()


class Engine(Protocol):
    """A model that can be asked for replies, many at a time.

    `generate` raises `pairgen.errors.RequestError` when this one request fails (kinds: context_exceeded, timeout,
    request_failed), `pairgen.errors.EngineError` when the engine as a whole cannot go on (EngineRefused: also not after
    it was started again), and `pairgen.errors.UsageProblem` when it can never do what is asked (`min_tokens` or `go_on`
    at a foreign server).
    """

    @property
    def name(self) -> str:
        """What serves, such as vllm."""

    @property
    def model(self) -> str:
        """What is served, as the user or the server calls it."""

    async def start(self) -> None:
        """Load, or connect; raises EngineError with the fix. May be called again after `close`."""

    async def generate(self, request: Request) -> Completion: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the user said about the engine; one engine ignores what it has no use for.

    `name` is auto, vllm, openai, transformers or scripted. `concurrency` is the number of requests open at once.
    `max_tokens` is the largest `Sampling.max_tokens` to come (0: not known), so that a context that is too small for it
    is found at the start. `engine_args` and `chat_template_kwargs` are KEY=VALUE, a value being JSON or plain text.
    `lora` is the folder or Hub id of an adapter that the model is served with. `memory_share` is the part (0 to 1) of
    the device's memory that is this engine's, where two share it.
    """

    name: str = "auto"
    model: str = ""
    revision: str | None = None
    base_urls: tuple[str, ...] = ()
    concurrency: int = 64
    max_model_len: int | None = None
    dtype: str = "auto"
    timeout_s: float = 600.0
    engine_args: tuple[str, ...] = ()
    chat_template_kwargs: tuple[str, ...] = ()
    max_tokens: int = 0
    seed: int = 0
    lora: str | None = None
    memory_share: float = 1.0
