"""The scripted engine says the same thing each time, and its file can play every kind of reply."""

import asyncio
import json
import time

import pytest

from pairgen.engines import Completion, EngineOptions, Request, Sampling
from pairgen.engines.scripted import ScriptedEngine
from pairgen.engines.select import make_engine
from pairgen.errors import RequestError, UsageProblem
from pairgen.records import Message


def ask(*texts, **sampling):
    roles = ("user", "assistant")
    messages = tuple(Message(roles[i % 2], text) for i, text in enumerate(texts))
    return Request(messages, Sampling(**sampling), "s")


def say(engine, request):
    return asyncio.run(engine.generate(request))


def script(tmp_path, data):
    path = tmp_path / "replies.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return make_engine(EngineOptions(name="scripted", model=str(path)))


def test_without_a_script_a_reply_is_a_function_of_the_messages():
    engine = ScriptedEngine()
    assert say(engine, ask("a")) == say(ScriptedEngine(), ask("a"))
    assert say(engine, ask("a")).text != say(engine, ask("b")).text


def test_a_function_or_a_dictionary_answers():
    assert say(ScriptedEngine(lambda r: r.messages[-1].content.upper()), ask("go on")).text == "GO ON"
    own = Completion("x", "length", 1, 1)
    assert say(ScriptedEngine(lambda r: own), ask("a")) is own
    assert say(ScriptedEngine({"a": "b"}), ask("a")).text == "b"
    with pytest.raises(RequestError):
        say(ScriptedEngine({"a": "b"}), ask("c"))


def test_words_are_counted_and_cut_as_tokens_are():
    whole = say(ScriptedEngine({"a b": " one two\nthree "}), ask("a b"))
    assert whole == Completion(" one two\nthree ", "stop", 2, 3, 0)
    cut = say(ScriptedEngine({"a b": " one two\nthree "}), ask("a b", max_tokens=2))
    assert cut == Completion(" one two", "length", 2, 2, 0)


def test_a_reply_that_must_not_end_yet_is_filled_up():
    held = say(ScriptedEngine({"a b": "one two"}), ask("a b", min_tokens=4, max_tokens=9))
    assert held == Completion("one two … …", "stop", 2, 4, 0)


def test_latency_is_per_reply_and_not_added_up():
    engine = ScriptedEngine(latency_s=0.1)

    async def many():
        await asyncio.gather(*(engine.generate(ask(str(i))) for i in range(50)))

    start = time.monotonic()
    asyncio.run(many())
    assert 0.1 <= time.monotonic() - start < 2


def test_a_script_answers_by_the_first_and_the_last_message(tmp_path):
    engine = script(tmp_path, {
        "default": "I pass.",
        "replies": [
            {"first": r"SECRET: (?P<word>\w+)", "last": "^hint (?P<n>\\d)", "reply": "HINT \\g<n>: {not} \\g<word>"},
            {"first": "SECRET", "reply": "GUESS: a"},
        ],
    })  # fmt: skip
    assert engine.model == "replies"
    assert say(engine, ask("SECRET: owl", "x", "hint 2")).text == "HINT 2: {not} owl"
    assert say(engine, ask("SECRET: owl", "x", "guess")).text == "GUESS: a"
    assert say(engine, ask("other")).text == "I pass."


def test_of_several_replies_the_seed_takes_one_and_always_the_same(tmp_path):
    engine = script(tmp_path, {"replies": [{"last": "", "reply": ["a", "b", "c"]}]})
    taken = [say(engine, ask("x", seed=i)).text for i in range(30)]
    assert set(taken) == {"a", "b", "c"}
    assert taken == [say(engine, ask("x", seed=i)).text for i in range(30)]


def test_a_script_can_fail_and_can_end_otherwise(tmp_path):
    engine = script(tmp_path, {
        "replies": [
            {"last": "broken", "error": "timeout"},
            {"last": "long", "reply": "and so on", "finish_reason": "length"},
        ],
    })  # fmt: skip
    with pytest.raises(RequestError) as caught:
        say(engine, ask("broken"))
    assert caught.value.kind == "timeout"
    assert say(engine, ask("long")).finish_reason == "length"


@pytest.mark.parametrize("model", ["", "owner/model", "missing.json"])
def test_it_is_not_reached_without_a_script(model):
    with pytest.raises(UsageProblem, match=r"REPLIES\.json"):
        make_engine(EngineOptions(name="scripted", model=model))


@pytest.mark.parametrize(
    "data", ["{", "[]", {"replies": [{"last": "("}]}, {"replies": [{"lst": "x", "reply": "y"}]}, {"replies": ["x"]}]
)
def test_a_file_that_is_no_script_is_wrong_usage(tmp_path, data):
    with pytest.raises(UsageProblem, match="is no script"):
        script(tmp_path, data)
