"""The vLLM engine with a real model, on whatever device vLLM was built for."""

import asyncio
import dataclasses
import importlib.util
import os
import signal

import pytest

from pairgen.engines import EngineOptions, Request, Sampling
from pairgen.errors import EngineError, RequestError, UsageProblem
from pairgen.records import Message

pytestmark = pytest.mark.model

SHOTS = "Name the item that comes next.\n\nRow: 1, 2, 3\nNEXT: 4\n\nRow: spring, summer, autumn\nNEXT: winter\n\nRow: "


@pytest.fixture(scope="module", autouse=True)
def vllm_is_there():
    if importlib.util.find_spec("vllm") is None:
        if os.environ.get("PAIRGEN_REQUIRE_VLLM") == "1":
            pytest.fail("PAIRGEN_REQUIRE_VLLM=1, and vLLM is not installed")
        pytest.skip("vLLM is not installed; PAIRGEN_REQUIRE_VLLM=1 makes this a failure")


def ask(text, session="s", **sampling):
    return Request((Message("user", text),), Sampling(**{"max_tokens": 24, **sampling}), session)


def engine_for(folder, **options):
    from pairgen.engines.vllm_ import VllmEngine

    return VllmEngine(EngineOptions(name="vllm", model=str(folder), concurrency=32, max_model_len=2048, **options))


@pytest.fixture(scope="module")
def runner():
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


@pytest.fixture(scope="module")
def engine(smollm2, runner):
    """One engine for all tests, since it takes most of a minute to load; each setting below is seen to arrive."""
    engine = engine_for(smollm2, engine_args=("scheduling-policy=priority", "max_logprobs=3"), max_tokens=300)
    runner(engine.start())
    yield engine
    runner(engine.close())


async def all_of(engine, requests):
    return await asyncio.gather(*(engine.generate(r) for r in requests))


def test_long_prompts_are_drawn_with_seeds_though_together_they_fill_more_than_a_batch(engine, runner):
    """On the CPU a prompt that is read in parts must not have a seed: vLLM sets its generator back, and dies of it."""
    long = [ask(f"{n}. " + SHOTS * 12, temperature=0.8, seed=n, max_tokens=4) for n in range(9)]
    replies = runner(all_of(engine, long))
    assert sum(r.prompt_tokens for r in replies) > engine._llm.vllm_config.scheduler_config.max_num_batched_tokens
    assert all(r.completion_tokens for r in replies)


def test_the_engine_is_set_up_as_asked(engine):
    config = engine._llm.vllm_config
    assert config.model_config.max_model_len == 2048
    assert config.model_config.generation_config == "vllm"
    assert config.model_config.max_logprobs == 3
    assert config.scheduler_config.policy == "priority"
    assert config.scheduler_config.max_num_seqs == 32
    assert config.cache_config.enable_prefix_caching


def test_a_reply_ends_with_its_turn_and_the_token_that_ends_it_is_not_kept(engine, runner):
    reply = runner(engine.generate(ask(SHOTS + "first, second, third", max_tokens=100)))
    assert reply.finish_reason == "stop"
    assert reply.text.strip()
    assert "<|im_end|>" not in reply.text
    assert reply.completion_tokens == len(reply.token_ids) + 1
    assert engine._chat.decode(reply.token_ids) == reply.text
    assert reply.prompt_tokens == len(engine._chat.encode(ask(SHOTS + "first, second, third").messages))


def test_a_reply_that_is_cut_says_so(engine, runner):
    reply = runner(engine.generate(ask("Tell me a long story about a whale.", max_tokens=5)))
    assert (reply.finish_reason, reply.completion_tokens, len(reply.token_ids)) == ("length", 5, 5)


def test_a_reply_that_must_not_end_goes_on_from_where_it_stands(engine, runner):
    """The end of a turn, and every other special token, is out of reach for the first 40 tokens."""
    free = runner(engine.generate(ask(SHOTS + "first, second, third", max_tokens=100)))
    messages = (*ask(SHOTS + "first, second, third").messages, Message("assistant", free.text))
    held = Sampling(min_tokens=40, max_tokens=60)
    rest = runner(engine.generate(Request(messages, held, "s", go_on=True)))
    assert rest.completion_tokens >= 40 and rest.text.strip()
    assert not set(engine._chat.ends_of(held)) & set(rest.token_ids)
    assert rest.prompt_tokens == free.prompt_tokens + len(free.token_ids)


def test_a_stop_string_cuts_the_reply(engine, runner):
    free = runner(engine.generate(ask(SHOTS + "2, 4, 6")))
    stop = free.text[2:5]
    cut = runner(engine.generate(ask(SHOTS + "2, 4, 6", stop=(stop,))))
    assert cut.finish_reason == "stop"
    assert cut.text == free.text[: free.text.index(stop)]


def test_the_next_turn_finds_its_prefix(engine, runner):
    story = "Here is a list of words, remember them: " + ", ".join(f"word{i}" for i in range(60))
    first = runner(engine.generate(ask(story, max_tokens=4)))
    turns = (Message("user", story), Message("assistant", first.text), Message("user", "Go on."))
    second = runner(engine.generate(Request(turns, Sampling(max_tokens=4), "s")))
    assert second.cached_tokens > first.prompt_tokens // 2


def test_more_requests_than_sequences_are_all_answered(engine, runner):
    replies = runner(all_of(engine, [ask(f"Say the number {i}.", f"s{i}", max_tokens=4) for i in range(40)]))
    assert all(0 < r.completion_tokens <= 4 for r in replies)


def test_a_seed_draws_the_same_and_another_draws_otherwise(engine, runner):
    requests = [ask("Say a word.", temperature=1.0, seed=seed, max_tokens=8) for seed in (1, 1, 2, 3, 4)]
    one, again, *others = runner(all_of(engine, requests))
    assert one.token_ids == again.token_ids
    assert any(other.token_ids != one.token_ids for other in others)


@pytest.mark.parametrize(("words", "max_tokens"), [(3_000, 5), (1_000, 1_500)], ids=["prompt", "prompt and reply"])
def test_what_does_not_fit_the_context_fails_alone(engine, runner, words, max_tokens):
    async def both():
        return await asyncio.gather(
            engine.generate(ask("word " * words, max_tokens=max_tokens)),
            engine.generate(ask("Hi", max_tokens=3)),
            return_exceptions=True,
        )

    failed, played = runner(both())
    assert isinstance(failed, RequestError)
    assert failed.kind == "context_exceeded"
    assert "2048" in str(failed)
    assert str(max_tokens) in str(failed)
    assert played.completion_tokens == 3


def test_a_cancelled_request_is_taken_out_of_the_engine(engine, runner):
    async def play():
        long = asyncio.ensure_future(engine.generate(ask("Tell me a long story.", max_tokens=1_900)))
        await asyncio.sleep(1.0)
        long.cancel()
        reply = await engine.generate(ask("Hi", max_tokens=3))
        return long, reply

    long, reply = runner(play())
    assert long.cancelled()
    assert reply.completion_tokens == 3
    assert engine._llm.output_processor.get_num_unfinished_requests() == 0


def test_a_request_that_vllm_refuses_fails_alone(engine, runner):
    with pytest.raises(RequestError, match="top_p") as caught:
        runner(engine.generate(ask("Hi", top_p=7.0)))
    assert caught.value.kind == "request_failed"


def test_engines_on_one_gpu_share_its_memory(smollm2):
    assert engine_for(smollm2, memory_share=0.5)._defaults(False, None)["gpu_memory_utilization"] == 0.45
    assert "gpu_memory_utilization" not in engine_for(smollm2)._defaults(False, None)
    assert "gpu_memory_utilization" not in engine_for(smollm2, memory_share=0.5)._defaults(True, None)


def test_one_engine_speaks_with_its_adapter_and_without(smollm2, smollm2_adapter, engine, runner):
    """Side by side in one batch; what it says without is what an engine says that has none."""
    tuned = engine_for(smollm2, lora=str(smollm2_adapter), max_tokens=300)
    requests = [ask(SHOTS + row, max_tokens=12) for row in ("first, second, third", "2, 4, 6")]
    bare = [dataclasses.replace(request, bare=True) for request in requests]

    async def play():
        await tuned.start()
        try:
            return await all_of(tuned, [*requests, *bare])
        finally:
            await tuned.close()

    replies = runner(play())
    assert tuned._defaults(True, None)["max_lora_rank"] == 8
    expected = runner(all_of(engine, requests))
    assert [r.text for r in replies[2:]] == [r.text for r in expected]
    assert all(a.text != b.text for a, b in zip(replies[:2], expected, strict=True))


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("gpu_memory_utilisation=0.5", "did you mean gpu_memory_utilization"),
        ("max_num_seqs=many", "does not fit"),
        ("dtype", "dtype=VALUE"),
        ("model=other", "--model"),
    ],
)
def test_a_wrong_engine_argument_is_wrong_usage_before_anything_loads(smollm2, runner, said, hint):
    with pytest.raises(UsageProblem, match=hint):
        runner(engine_for(smollm2, engine_args=(said,)).start())


def test_max_tokens_beyond_the_context_is_found_at_the_start(smollm2, runner):
    with pytest.raises(EngineError, match=r"3000.*2048"):
        runner(engine_for(smollm2, max_tokens=3_000).start())


def test_what_vllm_cannot_load_is_one_sentence_with_a_fix(smollm2, runner):
    with pytest.raises(EngineError, match="vLLM cannot serve"):
        runner(engine_for(smollm2, engine_args=("tokenizer_mode=none_such",)).start())


def test_a_folder_that_is_none(tmp_path, runner):
    with pytest.raises(EngineError, match="no model folder"):
        runner(engine_for(tmp_path / "nothing").start())


def test_a_dead_engine_is_an_engine_error_and_starts_again(engine, runner):
    """Its core process is killed while it plays, as the system does when memory runs out. The last test: it is slow."""

    async def play():
        long = asyncio.ensure_future(engine.generate(ask("Tell me a long story.", max_tokens=1_900)))
        await asyncio.sleep(1.0)
        for process in engine._llm.engine_core.resources.engine_manager.processes:
            os.kill(process.pid, signal.SIGKILL)
        (found,) = await asyncio.gather(long, return_exceptions=True)
        await engine.close()
        with pytest.raises(EngineError, match="not started"):
            await engine.generate(ask("Hi"))
        await engine.start()
        return found, await engine.generate(ask("Hi", max_tokens=3))

    found, reply = runner(play())
    assert isinstance(found, EngineError)
    assert "resume" in str(found)
    assert reply.completion_tokens == 3
