"""Reads one recorded call to a backend: what was sent, and what is known of the answer. Pure; knows no files.

Each backend of clemcore records its own objects: a list of messages (the API backends), or the rendered chat template
with the whole output (huggingface_local), or a mixture (llama.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairgen.clem.rendered import SPECIAL
from pairgen.clem.transcript import merged
from pairgen.records import Message, Messages

_AT_END = re.compile(rf"(?:\s*(?:{SPECIAL}))+\s*\Z")
_STOPPED = {"stop", "end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token"}
_CUT = {"length", "max_tokens", "max_output_tokens", "model_length", "incomplete"}


class Call(NamedTuple):
    """One entry of a requests file: prompt and answer as the backend recorded them, `reply` as the game saw it."""

    timestamp: str
    reply: str | None
    prompt: Any
    response: Mapping[str, Any]


class Answer(NamedTuple):
    """What a backend said of its answer; -1 and "unknown" where it said nothing. `raw` is None likewise."""

    raw: str | None
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


def call_of(entry: Mapping[str, Any]) -> Call | None:
    """A call from its entry (up to clemcore 3.4.1 the call itself, since then in `call`), or None for another thing."""
    inner = entry.get("call", entry)
    if not isinstance(inner, Mapping) or "manipulated_prompt_obj" not in inner:
        return None
    response = inner.get("raw_response_obj")
    response = response if isinstance(response, Mapping) else {}
    shown = response.get("clem_player")
    reply = shown.get("response") if isinstance(shown, Mapping) else None
    return Call(str(inner.get("timestamp", "")), reply, inner["manipulated_prompt_obj"], response)


def sent_messages(prompt: Any) -> Messages | None:
    """The prompt as a message list, where it was recorded as one of text alone; never two of a role in a row."""
    if not isinstance(prompt, list) or not prompt:
        return None
    messages = [_message(item) for item in prompt]
    return merged([m for m in messages if m]) if all(messages) else None


def sent_text(prompt: Any) -> str | None:
    """The prompt as the rendered chat template, where it was recorded as one."""
    inputs = prompt.get("inputs") if isinstance(prompt, Mapping) else None
    return inputs if isinstance(inputs, str) else None


def _message(item: Any) -> Message | None:
    """A message of any backend: content as text or as text parts, or Google's `parts` of a `model`."""
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
        return None
    content = item.get("content", item.get("parts"))
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        known = [text for text in texts if isinstance(text, str)]
        content = "".join(known) if len(known) == len(texts) else None
    if not isinstance(content, str):
        return None
    return Message("assistant" if item["role"] == "model" else item["role"], content)


def answer_of(call: Call) -> Answer:
    """What is known of the answer to a call."""
    response = call.response
    inner = response.get("response")
    if isinstance(inner, str):
        return _of_output(call, inner)
    if isinstance(inner, Mapping):  # llama.cpp keeps the library's answer one level down
        response = inner
    choice = _first(response.get("choices")) or _first(response.get("candidates"))
    message = choice.get("message")
    said = message if isinstance(message, Mapping) else choice
    raw = next((said[k] for k in ("content", "text") if isinstance(said.get(k), str)), None)
    reason = choice.get("finish_reason") or response.get("stop_reason") or response.get("finish_reason")
    return Answer(raw, _reason(reason or response.get("status")), *_usage(response))


def _of_output(call: Call, output: str) -> Answer:
    """From a decoded output: it begins with the prompt, and ends with a special token where the model ended it."""
    inputs = sent_text(call.prompt)
    if inputs is None or not output.startswith(inputs):
        return Answer(None, "unknown", -1, -1, -1)
    body = output[len(inputs) :]
    if end := _AT_END.search(body):
        return Answer(body[: end.start()], "stop", -1, -1, -1)
    # an end token that is spelled in another way: clemcore has cut it off for the game
    culled = body.strip().removeprefix(call.reply or body.strip())
    if culled != body.strip() and re.fullmatch(r"\S{1,40}", culled):
        return Answer(body.rstrip().removesuffix(culled), "stop", -1, -1, -1)
    return Answer(body, "length", -1, -1, -1)


def _first(items: Any) -> Mapping[str, Any]:
    return items[0] if isinstance(items, list) and items and isinstance(items[0], Mapping) else {}


def _reason(word: Any) -> str:
    if not isinstance(word, str) or not word:
        return "unknown"
    word = word.rsplit(".", 1)[-1].lower()
    return "stop" if word in _STOPPED else "length" if word in _CUT else word


def _usage(response: Mapping[str, Any]) -> tuple[int, int, int]:
    """Prompt, completion and cached tokens, by whichever names the backend's library has for them."""
    usage = response.get("usage") or response.get("usage_metadata") or {}
    if isinstance(usage.get("tokens"), Mapping):
        usage = usage["tokens"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return (
        _count(usage, "prompt_tokens", "input_tokens", "prompt_token_count"),
        _count(usage, "completion_tokens", "output_tokens", "candidates_token_count"),
        _count({**usage, **details}, "cached_tokens", "cache_read_input_tokens", "cached_content_token_count"),
    )


def _count(usage: Mapping[str, Any], *names: str) -> int:
    return next((int(usage[n]) for n in names if isinstance(usage.get(n), (int, float))), -1)
