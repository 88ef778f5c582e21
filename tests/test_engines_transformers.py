"""The transformers engine with a real model: what it says is what `generate` says, whatever shares the batch."""

import asyncio
import dataclasses
import shutil
from types import SimpleNamespace

import pytest

from pairgen.engines import EngineOptions, Request, Sampling
from pairgen.engines.chat import load_chat
from pairgen.errors import EngineError, RequestError, UsageProblem
from pairgen.records import Message

pytestmark = pytest.mark.model
pytest.importorskip("torch", reason="torch is not installed: pip install 'pairgen[local]'")

SHOTS = "Name the item that comes next.\n\nRow: 1, 2, 3\nNEXT: 4\n\nRow: spring, summer, autumn\nNEXT: winter\n\nRow: "
ROWS = ["first, second, third", "Monday, Tuesday, Wednesday", "2, 4, 6, 8, 10, 12", "a, b, c", "red, green"]


def user(text):
    return (Message("user", text),)


def ask(text, session="s", **sampling):
    messages = user(text) if isinstance(text, str) else text
    return Request(messages, Sampling(**{"max_tokens": 24, **sampling}), session)


def engine_for(folder, **options):
    from pairgen.engines.transformers_ import TransformersEngine

    return TransformersEngine(EngineOptions(name="transformers", model=str(folder), concurrency=8, **options))


@pytest.fixture(scope="module")
def runner():
    """One event loop for the module, so that one engine can serve all its tests."""
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


@pytest.fixture(scope="module")
def engine(smollm2, runner):
    engine = engine_for(smollm2)
    runner(engine.start())
    yield engine
    runner(engine.close())


@pytest.fixture(scope="module")
def reference(smollm2):
    """Greedy replies of the plain `generate`, one prompt at a time."""
    import torch
    from transformers import AutoModelForCausalLM

    chat = load_chat(str(smollm2))
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()

    def reply(messages, max_tokens):
        ids = torch.tensor([chat.encode(messages)])
        mask = torch.ones_like(ids)
        out = model.generate(ids, attention_mask=mask, max_new_tokens=max_tokens, do_sample=False)
        return chat.without_end(out[0, ids.shape[1] :].tolist())

    return reply


async def all_of(engine, requests):
    return await asyncio.gather(*(engine.generate(r) for r in requests))


def test_greedy_replies_in_a_batch_equal_those_of_generate(engine, runner, reference):
    requests = [ask(SHOTS + row, f"s{i}") for i, row in enumerate(ROWS)] + [ask("Hi!", "short")]
    replies = runner(all_of(engine, requests))
    assert [r.token_ids for r in replies] == [reference(r.messages, 24) for r in requests]


def test_a_later_turn_computes_only_what_is_new_and_says_the_same(engine, runner, reference):
    first = runner(engine.generate(ask(SHOTS + "north, east, south")))
    turns = (*user(SHOTS + "north, east, south"), Message("assistant", first.text), Message("user", "And then?"))
    second = runner(engine.generate(ask(turns)))
    assert second.cached_tokens >= first.prompt_tokens
    assert second.token_ids == reference(turns, 24)


def test_the_count_of_tokens_and_the_reason_of_the_end(engine, runner):
    cut = runner(engine.generate(ask("Tell me a long story about a whale.", max_tokens=5)))
    assert (cut.finish_reason, cut.completion_tokens, len(cut.token_ids)) == ("length", 5, 5)
    whole = runner(engine.generate(ask(SHOTS + ROWS[0], max_tokens=60)))
    assert whole.finish_reason == "stop"
    assert whole.completion_tokens == len(whole.token_ids) + 1  # the token that ends the turn is counted, not kept
    assert whole.prompt_tokens == len(engine._chat.encode(user(SHOTS + ROWS[0])))
    assert engine._chat.decode(whole.token_ids) == whole.text


def test_a_stop_string_cuts_the_reply(engine, runner):
    free = runner(engine.generate(ask(SHOTS + ROWS[1])))
    stop = free.text[2:5]
    cut = runner(engine.generate(ask(SHOTS + ROWS[1], stop=(stop,))))
    assert cut.finish_reason == "stop"
    assert cut.text == free.text[: free.text.index(stop)]


def test_a_reply_that_must_not_end_goes_on_and_says_no_special_token(engine, runner):
    free = runner(engine.generate(ask(SHOTS + ROWS[0])))
    assert free.finish_reason == "stop"
    requests = [ask(SHOTS + ROWS[0], "held", min_tokens=60, max_tokens=70), ask(SHOTS + ROWS[0], "free")]
    held, beside = runner(all_of(engine, requests))
    assert held.completion_tokens >= 60 and held.text.startswith(free.text)
    special = set(engine._chat.ends_of(requests[0].sampling))
    assert len(special) > len(engine._chat.end_ids) and not special & set(held.token_ids)
    assert beside.token_ids == free.token_ids


def test_a_model_goes_on_from_a_reply_that_was_begun(engine, runner):
    """What it says on from half of its own reply is the other half."""
    request = ask(SHOTS + ROWS[0], min_tokens=30, max_tokens=40)
    whole = runner(engine.generate(request))
    half = engine._chat.decode(whole.token_ids[:12])
    begun = dataclasses.replace(request, messages=(*request.messages, Message("assistant", half)), go_on=True)
    rest = runner(engine.generate(dataclasses.replace(begun, sampling=Sampling(max_tokens=28, min_tokens=18))))
    assert rest.prompt_tokens == whole.prompt_tokens + 12
    assert half + rest.text == whole.text


def test_a_seed_gives_the_same_draw_in_any_company(engine, runner):
    drawn = {"temperature": 1.0, "top_p": 0.9}
    alone = runner(engine.generate(ask(SHOTS + ROWS[2], seed=5, **drawn)))
    others = [ask(SHOTS + row, f"o{i}", seed=i, temperature=0.7) for i, row in enumerate(ROWS)]
    company = runner(all_of(engine, [*others, ask(SHOTS + ROWS[2], seed=5, **drawn)]))
    assert company[-1].token_ids == alone.token_ids
    seeds = runner(all_of(engine, [ask("Say a word.", seed=i, **drawn) for i in range(8)]))
    assert len({r.text for r in seeds}) > 1


def test_more_requests_than_rows_are_all_answered(engine, runner):
    replies = runner(all_of(engine, [ask(f"Say the number {i}.", f"s{i}", max_tokens=4) for i in range(20)]))
    assert all(r.completion_tokens > 0 for r in replies)


def test_a_prompt_without_room_for_its_reply_fails_alone(engine, runner):
    async def both():
        return await asyncio.gather(
            engine.generate(ask("word " * 9_000)), engine.generate(ask("Hi", max_tokens=3)), return_exceptions=True
        )

    failed, played = runner(both())
    assert isinstance(failed, RequestError)
    assert failed.kind == "context_exceeded"
    assert "8192" in str(failed)
    assert played.completion_tokens == 3


def test_a_cancelled_request_leaves_and_the_others_stay(engine, runner):
    async def play():
        long = asyncio.ensure_future(engine.generate(ask("Tell me a long story.", max_tokens=2_000)))
        await asyncio.sleep(0.5)
        long.cancel()
        reply = await engine.generate(ask("Hi", max_tokens=3))
        return long, reply

    long, reply = runner(play())
    assert long.cancelled()
    assert reply.completion_tokens == 3
    assert not engine._batch.busy


def test_a_reply_that_takes_too_long_is_a_timeout(smollm2, runner):
    async def play():
        engine = engine_for(smollm2, timeout_s=0.3)
        await engine.start()
        try:
            await engine.generate(ask("Tell me a long story.", max_tokens=4_000))
        finally:
            await engine.close()

    with pytest.raises(RequestError) as caught:
        runner(play())
    assert caught.value.kind == "timeout"


def test_an_engine_starts_again_after_it_was_closed(smollm2, runner):
    async def play():
        engine = engine_for(smollm2)
        for _ in range(2):
            await engine.start()
            reply = await engine.generate(ask("Hi", max_tokens=2))
            await engine.close()
        with pytest.raises(EngineError):
            await engine.generate(ask("Hi"))
        return reply

    assert runner(play()).completion_tokens == 2


def test_a_broken_step_fails_every_open_request_as_an_engine_error(smollm2, runner):
    async def play():
        engine = engine_for(smollm2)
        await engine.start()

        def step():
            raise RuntimeError("out of memory, says the test")

        engine._batch.step = step
        found = await asyncio.gather(engine.generate(ask("Hi")), engine.generate(ask("Ho")), return_exceptions=True)
        await engine.close()
        return found

    found = runner(play())
    assert [type(e) for e in found] == [EngineError, EngineError]
    assert "batch_size" in str(found[0])


def test_batches_by_generate_say_the_same(smollm2, runner, reference):
    """The way of models with other layers, here with one that needs it not, so that there is something to compare."""
    from pairgen.engines.static_batch import StaticBatch

    async def play(requests):
        engine = engine_for(smollm2)
        await engine.start()
        engine._batch = StaticBatch(engine._batch._model, engine._chat, rows=4, tokens=10_000)
        try:
            return await all_of(engine, requests)
        finally:
            await engine.close()

    requests = [ask(SHOTS + row, f"s{i}", max_tokens=12 + i) for i, row in enumerate(ROWS)]
    *replies, held = runner(play([*requests, ask(SHOTS + ROWS[0], "held", max_tokens=40, min_tokens=35)]))
    assert [r.token_ids for r in replies] == [reference(r.messages, 12 + i) for i, r in enumerate(requests)]
    assert held.completion_tokens >= 35


def test_an_adapter_changes_what_is_said_and_its_partner_has_none(smollm2, smollm2_adapter, runner, reference):
    """As the reference with the adapter beside the weights says it; the partner of the same base as the bare model."""
    from pipelines.rollout_config import RolloutConfig
    from pipelines.speakers import make_speakers

    base, lora = str(smollm2), str(smollm2_adapter)
    config = RolloutConfig(model=base, engine="transformers", partner=base, lora=lora, concurrency=8, dtype="float32")
    requests = [ask(SHOTS + row, max_tokens=12) for row in ROWS[:3]]

    async def play():
        both = make_speakers(config, lambda _: None)
        await both.start()
        try:
            return [await all_of(both, [dataclasses.replace(r, bare=bare) for r in requests]) for bare in (False, True)]
        finally:
            await both.close()

    learner, partner = runner(play())
    assert [r.token_ids for r in partner] == [reference(r.messages, 12) for r in requests]
    assert [r.token_ids for r in learner] == tuned_replies(smollm2, smollm2_adapter, requests)
    assert all(a.token_ids != b.token_ids for a, b in zip(learner, partner, strict=True))


def tuned_replies(folder, adapter, requests):
    """Greedy replies of peft's own model, unmerged."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    chat = load_chat(str(folder))
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, str(adapter)).eval()
    replies = []
    for request in requests:
        ids = torch.tensor([chat.encode(request.messages)])
        most = request.sampling.max_tokens
        out = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, do_sample=False
        )  # fmt: skip
        replies.append(chat.without_end(out[0, ids.shape[1] :].tolist()))
    return replies


def test_an_adapter_for_another_model_is_one_sentence_with_a_fix(smollm2, smollm2_adapter, tmp_path, runner):
    import json

    other = tmp_path / "other"
    shutil.copytree(smollm2_adapter, other)
    path = other / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "target_modules": ["query_key_value"]}))
    with pytest.raises(EngineError, match=r"cannot be applied.*--model"):
        runner(engine_for(smollm2, lora=str(other)).start())
    with pytest.raises(EngineError, match="no adapter folder"):
        runner(engine_for(smollm2, lora=str(tmp_path / "nothing")).start())


def test_max_tokens_beyond_the_context_is_found_at_the_start(smollm2, runner):
    with pytest.raises(EngineError, match=r"9000.*8192"):
        runner(engine_for(smollm2, max_tokens=9_000).start())
    with pytest.raises(EngineError, match=r"--max-model-len 10000.*8192"):
        runner(engine_for(smollm2, max_model_len=10_000).start())


def test_a_folder_that_is_none_and_a_name_that_is_none(tmp_path, runner, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EngineError, match="no model folder"):
        runner(engine_for(tmp_path / "nothing").start())
    with pytest.raises(EngineError, match=r"no config\.json"):
        runner(engine_for(tmp_path).start())
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(EngineError, match="merge it"):
        runner(engine_for(tmp_path).start())


def test_a_model_without_a_chat_template_is_refused(smollm2, tmp_path, runner):
    copy = tmp_path / "bare"
    shutil.copytree(smollm2, copy, ignore=shutil.ignore_patterns("*.jinja", "*.safetensors"))
    with pytest.raises(EngineError, match="chat template"):
        runner(engine_for(copy).start())


def test_an_unknown_dtype_or_argument_is_wrong_usage(smollm2):
    with pytest.raises(UsageProblem, match="float32"):
        engine_for(smollm2, dtype="float33")
    with pytest.raises(UsageProblem, match="batch_size"):
        engine_for(smollm2, engine_args=("batchsize=3",))


def test_the_end_of_turn_is_found_even_where_no_file_names_it(smollm2, tmp_path):
    """As after a merge that lost generation_config.json: the template still tells."""
    import json

    copy = tmp_path / "merged"
    shutil.copytree(smollm2, copy, ignore=shutil.ignore_patterns("generation_config.json", "*.safetensors"))
    for name, key, value in [
        ("config.json", "eos_token_id", 0),
        ("tokenizer_config.json", "eos_token", "<|endoftext|>"),
    ]:
        data = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps({**data, key: value}))
    chat = load_chat(str(copy))
    assert chat.tokenizer.convert_tokens_to_ids("<|im_end|>") in chat.end_ids


def test_messages_that_the_template_refuses_fail_alone(engine, runner):
    chat = engine._chat
    engine._chat = dataclasses.replace(chat, template_kwargs={"chat_template": "{{ raise_exception('no system') }}"})
    try:
        with pytest.raises(RequestError, match="no system"):
            runner(engine.generate(ask("Hi")))
    finally:
        engine._chat = chat


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({}, True),
        ({"layer_types": ["full_attention"] * 2}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["linear_attention", "full_attention"]}, False),
        ({"sliding_window": 4096}, False),
        ({"sliding_window": 4096, "use_sliding_window": False}, True),
        ({"is_encoder_decoder": True}, False),
    ],
)
def test_only_models_of_ordinary_attention_are_batched_continuously(config, fits):
    from pairgen.engines.batch import ContinuousBatch

    class Model:
        def __init__(self):
            text = SimpleNamespace(**config)
            self.config = SimpleNamespace(get_text_config=lambda: text)

        def forward(self, input_ids, attention_mask, position_ids, past_key_values):
            pass

    assert ContinuousBatch.fits(Model()) is fits
