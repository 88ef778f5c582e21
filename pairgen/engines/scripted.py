"""An engine without a model, for tests and benchmarks: replies are looked up or computed, the same each time.

From the command line: `--engine scripted --model REPLIES.json`. The file holds an object:

    {"latency_s": 0.01,
     "default": "I pass.",
     "replies": [{"first": "SECRET: (?P<word>\\\\w+)", "last": "hint", "reply": "HINT: not \\\\g<word>"},
                 {"last": "guess", "reply": ["GUESS: a", "GUESS: b"], "finish_reason": "length"},
                 {"last": "broken", "error": "timeout"}]}

`first` and `last` are regular expressions searched in the first and the last message of the user; the first entry whose
expressions are all found answers. A reply may name their groups as `\\g<name>`; of a list of replies one is taken by
the request's content and seed. `error` fails the request with that kind. Without a match it is `default`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairgen.engines import Completion, EngineOptions, Request
from pairgen.errors import RequestError, UsageProblem
from pairgen.records import content_id

Reply = Callable[[Request], "str | Completion"]

KEYS = {"first", "last", "reply", "finish_reason", "error"}


def echo(request: Request) -> str:
    """A reply that is a pure function of the messages."""
    return f"reply {content_id('scripted', request.messages)}"


class ScriptedEngine:
    """Answers by `reply`: a function of the request, or a dictionary from the user's last message to the text.

    Tokens are words here; a reply below `min_tokens` is filled up with dots. `latency_s` is how long each reply takes;
    any number of requests may be open.
    """

    name = "scripted"

    def __init__(
        self, reply: Reply | Mapping[str, str] = echo, *, latency_s: float = 0.0, model: str = "scripted"
    ) -> None:
        self._reply, self._latency_s, self.model = reply, latency_s, model

    async def start(self) -> None:
        pass

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(self._latency_s)
        said = self._said(request)
        if isinstance(said, Completion):
            return said
        words = re.findall(r"\s*\S+", said)
        while len(words) < request.sampling.min_tokens:
            said += " …"
            words.append(" …")
        limit = request.sampling.max_tokens
        prompt_tokens = sum(len(m.content.split()) for m in request.messages)
        if len(words) > limit:
            return Completion("".join(words[:limit]), "length", prompt_tokens, limit, 0)
        return Completion(said, "stop", prompt_tokens, len(words), 0)

    async def close(self) -> None:
        pass

    def _said(self, request: Request) -> str | Completion:
        if callable(self._reply):
            return self._reply(request)
        last = _user_message(request, -1)
        if last not in self._reply:
            raise RequestError("request_failed", f"the script has no reply to {last[:80]!r}")
        return self._reply[last]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a script file, its expressions compiled."""

    first: re.Pattern[str]
    last: re.Pattern[str]
    replies: tuple[str, ...]
    finish_reason: str
    error: str

    def answer(self, request: Request) -> str | Completion | None:
        """The reply, or None where an expression is not found."""
        found = [self.first.search(_user_message(request, 0)), self.last.search(_user_message(request, -1))]
        if None in found:
            return None
        if self.error:
            raise RequestError(self.error, f"the script fails this request ({self.error})")
        groups = {k: v or "" for m in found if m for k, v in m.groupdict().items()}
        pick = int(content_id(request.messages, request.sampling.seed), 16) % len(self.replies)
        text = re.sub(r"\\g<(\w+)>", lambda m: groups.get(m[1], m[0]), self.replies[pick])
        if self.finish_reason == "stop":
            return text
        prompt_tokens = sum(len(m.content.split()) for m in request.messages)
        return Completion(text, self.finish_reason, prompt_tokens, len(text.split()), 0)


def from_options(options: EngineOptions) -> ScriptedEngine:
    """The engine of a script file. Raises UsageProblem where `--model` is no such file."""
    path = Path(options.model)
    if path.suffix != ".json" or not path.is_file():
        raise UsageProblem(
            f"The engine scripted needs a file of replies, and {options.model or 'no --model'} is none: "
            f"give --model REPLIES.json."
        )
    try:
        script = json.loads(path.read_text(encoding="utf-8"))
        entries = [_entry(e) for e in script.get("replies", [])]
        default, latency_s = str(script.get("default", "")), float(script.get("latency_s", 0.0))
    except (ValueError, TypeError, AttributeError, KeyError, re.error) as error:
        raise UsageProblem(
            f'{path} is no script ({error}): it holds {{"replies": [{{"last": REGEX, "reply": TEXT}}]}}.'
        ) from error

    def reply(request: Request) -> str | Completion:
        answers = (entry.answer(request) for entry in entries)
        return next((a for a in answers if a is not None), default)

    return ScriptedEngine(reply, latency_s=latency_s, model=path.stem)


def _entry(data: Mapping[str, Any]) -> Entry:
    unknown = set(data) - KEYS
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]!r}, known: {', '.join(sorted(KEYS))}")
    reply = data["reply"] if "error" not in data else ""
    return Entry(
        re.compile(data.get("first", "")), re.compile(data.get("last", "")),
        tuple(reply) if isinstance(reply, list) else (reply,), data.get("finish_reason", "stop"), data.get("error", ""),
    )  # fmt: skip


def _user_message(request: Request, index: int) -> str:
    said = [m.content for m in request.messages if m.role == "user"]
    return said[index] if said else ""
