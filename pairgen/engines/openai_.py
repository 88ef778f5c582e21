"""Any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, a hosted one. Knows only its addresses.

An episode sticks to one server so that its prefix cache hits. A server that stops answering is left out for a minute
and its episodes go to the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai

from pairgen.engines import Completion, EngineOptions, Request, Sampling
from pairgen.engines.arguments import loose
from pairgen.errors import EngineError, EngineRefused, RequestError, UsageProblem, did_you_mean

REST_S = 60.0  # how long a server that failed is left alone
RETRIES = 3  # of one request at one server, with growing pauses: for 429, 5xx and broken connections
CONNECT_S = 10.0

TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|max_model_len|maximum (input|sequence|model) length|(prompt|input) is too long"
    r"|too many tokens|`max_new_tokens` must be",
    re.IGNORECASE,
)


@dataclass
class Server:
    """One address, and until when it is left alone. `fills_gaps`: it has its own values for what is not sent."""

    url: str
    client: openai.AsyncOpenAI
    models: tuple[str, ...] = ()
    fills_gaps: bool = False
    resting_until: float = field(default=0.0)


class OpenAIEngine:
    """Asks one or more servers for chat completions."""

    name = "openai"

    def __init__(self, options: EngineOptions) -> None:
        if options.engine_args:
            raise UsageProblem("--engine-arg has no effect on a server that runs elsewhere: give it to that server.")
        urls = options.base_urls or tuple(filter(None, [os.environ.get("OPENAI_BASE_URL")]))
        self.model = options.model
        self._urls = tuple(dict.fromkeys(url.rstrip("/") for url in urls))
        self._options = options
        self._servers: tuple[Server, ...] = ()
        self._known: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._template = loose("--chat-template-kwargs", options.chat_template_kwargs)

    async def start(self) -> None:
        """Ask every server for its models; raises EngineError naming the address that does not answer, and the fix.

        Where it starts again, one server that answers is enough: the others rest and are tried later.
        """
        earlier = self._known
        self._servers = tuple(Server(url, self._client(url), *earlier.get(url, ())) for url in self._urls)
        try:
            found = await asyncio.gather(*map(_look, self._servers), return_exceptions=True)
            failed = [(server, error) for server, error in zip(self._servers, found, strict=True) if error]
            for server, error in failed:
                if not (earlier and isinstance(error, EngineError) and len(failed) < len(found)):
                    raise error
                server.resting_until = time.monotonic() + REST_S
            self._known = {server.url: (server.models, server.fills_gaps) for server in self._servers}
            if not self.model:
                self.model = _only_model(self._servers)
        except EngineError:
            await self.close()
            raise

    async def generate(self, request: Request) -> Completion:
        """One reply. A server that breaks is left out, and the next one is asked."""
        while True:
            server = self._pick(request.session)
            try:
                return await asyncio.wait_for(self._ask(server, request), self._options.timeout_s)
            except (asyncio.TimeoutError, openai.APITimeoutError) as error:
                raise RequestError(
                    "timeout", f"{server.url} gave no reply within {self._options.timeout_s:g} seconds"
                ) from error
            except openai.APIConnectionError as error:
                server.resting_until = time.monotonic() + REST_S
                if all(s.resting_until > time.monotonic() for s in self._servers):
                    raise _unreachable(server.url, error) from error
            except openai.APIStatusError as error:
                raise _refused(server, self.model, error) from error
            except openai.APIError as error:
                raise RequestError("request_failed", f"{server.url}: {error}") from error

    async def close(self) -> None:
        for server in self._servers:
            await server.client.close()
        self._servers = ()

    def _client(self, url: str) -> openai.AsyncOpenAI:
        connections = self._options.concurrency + 8
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        timeout = httpx.Timeout(self._options.timeout_s, connect=CONNECT_S)
        return openai.AsyncOpenAI(
            base_url=url, api_key=os.environ.get("OPENAI_API_KEY") or "none", max_retries=RETRIES,
            http_client=openai.DefaultAsyncHttpxClient(limits=limits, timeout=timeout), timeout=timeout,
        )  # fmt: skip

    def _pick(self, session: str) -> Server:
        """The session's own server, or the next in its own order while that one rests."""
        if not self._servers:
            raise EngineError("The engine is not started.")
        now = time.monotonic()

        def order(server: Server) -> tuple[bool, bytes]:
            digest = hashlib.blake2b(f"{session}\n{server.url}".encode(), digest_size=8).digest()
            return server.resting_until > now, digest

        return min(self._servers, key=order)

    async def _ask(self, server: Server, request: Request) -> Completion:
        held = _held(server, request)
        messages: list[Any] = [{"role": m.role, "content": m.content} for m in request.messages]
        reply = await server.client.chat.completions.create(
            model=self.model,
            messages=messages,
            **_sampling(request.sampling),
            extra_body={**self._extra(server), **held} or None,
        )
        choices: list[Any] | None = reply.choices  # servers differ in what they leave out
        if not choices:
            raise RequestError("request_failed", f"{server.url} answered without a choice")
        choice, usage = choices[0], reply.usage
        details = usage.prompt_tokens_details if usage else None
        cached = details.cached_tokens if details else None
        return Completion(
            text=choice.message.content or "",
            finish_reason=choice.finish_reason or "",
            prompt_tokens=usage.prompt_tokens if usage else -1,
            completion_tokens=usage.completion_tokens if usage else -1,
            cached_tokens=-1 if cached is None else cached,
        )

    def _extra(self, server: Server) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if server.fills_gaps:
            extra = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
        if self._template:
            extra["chat_template_kwargs"] = self._template
        return extra


def _held(server: Server, request: Request) -> dict[str, Any]:
    """What makes vLLM and SGLang keep a model from ending its turn, and go on with a message that was begun.

    Special tokens are then shown as text: whoever asked sees where the model tried to leave its turn. Raises
    UsageProblem for a server that would ignore it.
    """
    fields: dict[str, Any] = {}
    if request.sampling.min_tokens:
        fields |= {"min_tokens": request.sampling.min_tokens, "skip_special_tokens": False}
    if request.go_on:
        fields |= {"continue_final_message": True, "add_generation_prompt": False}
    if fields and not server.fills_gaps:
        raise UsageProblem(
            f"{server.url} is no vLLM or SGLang server, so a model cannot be made to go on past its end there: "
            "serve the model with vLLM, or give --model FOLDER with --engine vllm or transformers."
        )
    return fields


def _sampling(sampling: Sampling) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": sampling.max_tokens, "n": 1,
        "presence_penalty": 0.0, "frequency_penalty": 0.0,
    }  # fmt: skip
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    if sampling.stop:
        fields["stop"] = list(sampling.stop)
    return fields


async def _look(server: Server) -> None:
    try:
        listed = await server.client.with_options(timeout=CONNECT_S, max_retries=1).models.list()
    except openai.APIConnectionError as error:
        raise _unreachable(server.url, error) from error
    except openai.NotFoundError as error:
        raise EngineError(
            f"{server.url} answers, but has no {server.url}/models: the address usually ends in /v1, "
            f"try --base-url {server.url}/v1."
        ) from error
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise _no_key(server.url) from error
    except (openai.APIError, ValueError, TypeError) as error:
        raise EngineError(
            f"{server.url} does not answer as an OpenAI-compatible server ({error}): check the address, "
            f"--base-url http://HOST:PORT/v1."
        ) from error
    models: list[Any] = getattr(listed, "data", None) or []
    server.models = tuple(str(m.id) for m in models)
    server.fills_gaps = any(getattr(m, "owned_by", "") in ("vllm", "sglang") for m in models)


def _only_model(servers: tuple[Server, ...]) -> str:
    for server in servers:
        if not server.models:
            raise EngineError(f"{server.url} lists no model: give --model NAME.")
    shared = [m for m in servers[0].models if all(m in s.models for s in servers)]
    listed = sorted({m for s in servers for m in s.models})
    if len(shared) != 1:
        where = "The server lists" if len(servers) == 1 else "The servers list"
        raise EngineError(f"{where} {', '.join(listed)}: say which one with --model NAME.")
    return shared[0]


def _unreachable(url: str, error: Exception) -> EngineError:
    cause = error.__cause__ or error
    return EngineError(
        f"No server answers at {url} ({type(cause).__name__}): check that it is running, and give its address as "
        f"--base-url http://HOST:PORT/v1."
    )


def _no_key(url: str) -> EngineRefused:
    known = "The key in OPENAI_API_KEY was refused by" if os.environ.get("OPENAI_API_KEY") else "No key was given to"
    return EngineRefused(f"{known} {url}: export OPENAI_API_KEY with a key that this server takes.")


def _refused(server: Server, model: str, error: openai.APIStatusError) -> Exception:
    said = _message(error)
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return _no_key(server.url)
    if isinstance(error, openai.NotFoundError):
        hint = f"give --model NAME, {did_you_mean(model, server.models)}"
        return EngineRefused(f"{server.url} does not know the model {model!r} or the path ({said}): {hint}")
    if error.status_code in (400, 413, 422) and (error.code == "context_length_exceeded" or TOO_LONG.search(said)):
        return RequestError("context_exceeded", said)
    return RequestError("request_failed", f"{server.url} answered {error.status_code}: {said}")


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(said or error.message).split())[:500]
