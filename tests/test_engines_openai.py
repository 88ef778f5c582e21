"""The OpenAI engine against real servers on this machine: retries, death, refusals, and what is sent."""

import asyncio
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pairgen.engines import EngineOptions, Request, Sampling, openai_
from pairgen.engines.openai_ import OpenAIEngine
from pairgen.errors import EngineError, EngineRefused, RequestError, UsageProblem
from pairgen.records import Message


class Fake:
    """A server of chat completions; `plan` holds what it does with the next requests, then it answers."""

    def __init__(self, models=("small",), owner="someone"):
        self.models, self.owner = models, owner
        self.plan, self.bodies, self.keys = [], [], []
        self.open = self.most_open = 0
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.gate.set()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                fake.keys.append(self.headers["Authorization"])
                if self.path != "/v1/models":
                    return self.reply(404, {"error": {"message": "no such path"}})
                data = [{"id": m, "object": "model", "created": 0, "owned_by": fake.owner} for m in fake.models]
                return self.reply(200, {"object": "list", "data": data})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with fake.lock:
                    fake.bodies.append(body)
                    fake.open += 1
                    fake.most_open = max(fake.most_open, fake.open)
                    step = fake.plan.pop(0) if fake.plan else (200, fake.answer(body))
                try:
                    fake.gate.wait(20)
                    if step == "cut":
                        self.close_connection = True
                        return self.connection.shutdown(socket.SHUT_RDWR)
                    return self.reply(*step)
                finally:
                    with fake.lock:
                        fake.open -= 1

            def reply(self, status, data):
                content = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                if status == 429:
                    self.send_header("Retry-After", "0.01")
                self.end_headers()
                self.wfile.write(content)

        class Server(ThreadingHTTPServer):
            request_queue_size = 256  # as many as a test opens at once
            daemon_threads = True

            def handle_error(self, *args):
                pass  # a client that hung up is part of these tests

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, body):
        text = f" said by {self.url}: {body['messages'][-1]['content']}\n"
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        usage["prompt_tokens_details"] = {"cached_tokens": 4}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}

    def die(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def fakes(monkeypatch):
    """Servers made by the test; they are taken down after it. Pauses between retries are short."""
    import openai._base_client

    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)
    made = []

    def make(**kwargs):
        made.append(Fake(**kwargs))
        return made[-1]

    yield make
    for fake in made:
        fake.gate.set()
        fake.die()


def ask(text="hello", session="s", **sampling):
    return Request((Message("system", "Be brief."), Message("user", text)), Sampling(**sampling), session)


def engine_for(*fakes, **options):
    return OpenAIEngine(EngineOptions(name="openai", base_urls=tuple(f.url for f in fakes), **options))


def play(engine, *requests):
    """Start, ask all at once, close; what was raised stands among the replies."""

    async def run():
        await engine.start()
        try:
            return await asyncio.gather(*(engine.generate(r) for r in requests), return_exceptions=True)
        finally:
            await engine.close()

    return asyncio.run(run())


def error(message, code=None):
    return {"error": {"message": message, "type": "x", "code": code}}


def test_a_reply_with_its_counts_as_the_server_gave_them(fakes):
    fake = fakes()
    (reply,) = play(engine_for(fake, model="small"), ask("hello"))
    assert reply.text == f" said by {fake.url}: hello\n"
    assert (reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("stop", 7, 3)
    assert reply.cached_tokens == 4


def test_every_field_of_the_sampling_is_sent(fakes):
    fake = fakes()
    play(engine_for(fake, model="small"), ask(temperature=0.7, top_p=0.9, max_tokens=11, seed=3, stop=("END",)))
    expected = {
        "model": "small", "temperature": 0.7, "top_p": 0.9, "max_tokens": 11, "seed": 3, "stop": ["END"], "n": 1,
        "presence_penalty": 0.0, "frequency_penalty": 0.0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
    }  # fmt: skip
    assert fake.bodies == [expected]


def test_what_vllm_would_fill_in_by_itself_is_said_to_vllm_alone(fakes):
    vllm, other = fakes(owner="vllm"), fakes(owner="someone")
    play(engine_for(vllm, model="small", chat_template_kwargs=("enable_thinking=false",)), ask())
    play(engine_for(other, model="small"), ask())
    assert vllm.bodies[0]["top_k"] == -1
    assert vllm.bodies[0]["repetition_penalty"] == 1.0
    assert vllm.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert not {"top_k", "chat_template_kwargs", "seed", "stop"} & set(other.bodies[0])


def test_a_reply_that_must_go_on_is_asked_of_vllm_as_vllm_understands_it(fakes):
    fake = fakes(owner="vllm")
    request = Request((Message("user", "a"), Message("assistant", "b")), Sampling(min_tokens=9), "s", go_on=True)
    play(engine_for(fake, model="small"), request)
    sent = fake.bodies[0]
    assert (sent["min_tokens"], sent["skip_special_tokens"]) == (9, False)
    assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False)
    assert sent["messages"][-1] == {"role": "assistant", "content": "b"}


def test_a_server_that_would_ignore_it_is_not_asked_to_go_on(fakes):
    fake = fakes(owner="someone")
    begun = Request((Message("user", "a"), Message("assistant", "b")), Sampling(), "s", go_on=True)
    refused = play(engine_for(fake, model="small"), ask(min_tokens=9), begun)
    assert all(isinstance(r, UsageProblem) and "vLLM" in str(r) for r in refused)
    assert fake.bodies == []


def test_the_model_is_asked_for_when_it_is_not_named(fakes):
    engine = engine_for(fakes(models=("only",)))
    play(engine, ask())
    assert engine.model == "only"


def test_several_models_have_to_be_told_apart(fakes):
    with pytest.raises(EngineError, match=r"a, b.*--model"):
        play(engine_for(fakes(models=("a", "b"))))
    with pytest.raises(EngineError, match=r"a, b.*--model"):
        play(engine_for(fakes(models=("a",)), fakes(models=("b",))))


def test_the_key_comes_from_the_environment(fakes, monkeypatch):
    fake = fakes()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    play(engine_for(fake, model="small"))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    play(engine_for(fake, model="small"))
    assert fake.keys[-1] == "Bearer secret"
    assert "secret" not in fake.keys[0]


def test_a_server_that_does_not_run_is_named_at_the_start(fakes):
    fake = fakes()
    gone = Fake()
    gone.die()
    with pytest.raises(EngineError, match=rf"{gone.url}.*--base-url"):
        play(engine_for(fake, gone, model="small"))


def test_an_address_without_v1_is_named_at_the_start(fakes):
    fake = fakes()
    bare = fake.url.removesuffix("/v1")
    with pytest.raises(EngineError, match=rf"--base-url {bare}/v1"):
        play(OpenAIEngine(EngineOptions(name="openai", model="small", base_urls=(bare,))))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_or_failing_server_is_asked_again(fakes, status):
    fake = fakes()
    fake.plan = [(status, error("not now"))] * 2
    (reply,) = play(engine_for(fake, model="small"), ask())
    assert reply.finish_reason == "stop"
    assert len(fake.bodies) == 3


@pytest.mark.parametrize("status", [429, 500])
def test_retries_end_and_the_request_fails_alone(fakes, status):
    fake = fakes()
    fake.plan = [(status, error("not now"))] * 50
    (failed,) = play(engine_for(fake, model="small"), ask())
    assert isinstance(failed, RequestError)
    assert failed.kind == "request_failed"
    assert f"{status}: not now" in str(failed)
    assert len(fake.bodies) == 1 + openai_.RETRIES


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens")),
        (400, error("The input (9000 tokens) is longer than the model's context length (8192 tokens).")),
        (400, error("the request exceeds the available context size, try increasing it")),
        (400, error("Please reduce the length", "context_length_exceeded")),
        (422, error("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096")),
        (400, {"object": "error", "message": "maximum context length is 8192", "code": 400}),
    ],
)
def test_a_prompt_over_the_context_is_told_by_its_kind(fakes, status, body):
    fake = fakes()
    fake.plan = [(status, body)]
    failed, played = play(engine_for(fake, model="small", concurrency=1), ask("a"), ask("b"))
    if not isinstance(failed, RequestError):
        failed, played = played, failed
    assert failed.kind == "context_exceeded"
    assert played.finish_reason == "stop"


def test_another_refusal_fails_the_request_with_the_servers_words(fakes):
    fake = fakes()
    fake.plan = [(400, error("seed is not supported here"))]
    (failed,) = play(engine_for(fake, model="small"), ask())
    assert failed.kind == "request_failed"
    assert "seed is not supported here" in str(failed)


def test_a_refused_key_and_an_unknown_model_stop_the_run(fakes, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fake = fakes()
    fake.plan = [(401, error("no")), (404, error("The model `smal` does not exist."))]
    (refused,) = play(engine_for(fake, model="small"), ask())
    (unknown,) = play(engine_for(fake, model="smal"), ask())
    assert isinstance(refused, EngineRefused)
    assert "OPENAI_API_KEY" in str(refused)
    assert isinstance(unknown, EngineRefused)
    assert "did you mean small" in str(unknown)


def test_a_reply_that_takes_too_long_is_a_timeout(fakes):
    fake = fakes()
    fake.gate.clear()
    (failed,) = play(engine_for(fake, model="small", timeout_s=0.3), ask())
    assert isinstance(failed, RequestError)
    assert failed.kind == "timeout"
    assert "0.3 seconds" in str(failed)


def test_an_answer_without_content_is_an_empty_reply_and_without_choices_a_failure(fakes):
    fake = fakes()
    empty, none = fake.answer({"messages": [{"content": "x"}]}), fake.answer({"messages": [{"content": "x"}]})
    empty["choices"][0]["message"]["content"] = None
    del empty["usage"]
    none["choices"] = []
    fake.plan = [(200, empty)]
    (reply,) = play(engine_for(fake, model="small"), ask())
    assert (reply.text, reply.prompt_tokens, reply.cached_tokens) == ("", -1, -1)
    fake.plan = [(200, none)]
    (failed,) = play(engine_for(fake, model="small"), ask())
    assert failed.kind == "request_failed"


def test_as_many_connections_are_open_as_requests(fakes):
    fake = fakes()
    fake.gate.clear()

    async def run():
        engine = engine_for(fake, model="small", concurrency=150)
        await engine.start()
        asked = [asyncio.ensure_future(engine.generate(ask(session=str(i)))) for i in range(150)]
        for _ in range(400):
            await asyncio.sleep(0.02)
            if fake.open == 150:
                break
        fake.gate.set()
        replies = await asyncio.gather(*asked)
        await engine.close()
        return replies

    assert len(asyncio.run(run())) == 150
    assert fake.most_open == 150


def test_an_episode_sticks_to_its_server_and_all_servers_are_used(fakes):
    pair = [fakes(), fakes()]
    requests = [ask(f"turn {turn}", f"episode {i}") for turn in range(3) for i in range(20)]
    replies = play(engine_for(*pair, model="small"), *requests)
    served = [r.text.split(": ")[0] for r in replies]
    assert served[:20] == served[20:40] == served[40:]
    assert len(set(served)) == 2
    assert play(engine_for(*reversed(pair), model="small"), *requests)[0].text == replies[0].text


def test_a_server_that_dies_hands_its_episodes_to_the_others_and_is_tried_again(fakes):
    alive, dying = fakes(), fakes()

    async def run():
        engine = engine_for(alive, dying, model="small")
        await engine.start()
        session = next(str(i) for i in range(99) if engine._pick(str(i)).url == dying.url)
        first = await engine.generate(ask(session=session))
        dying.plan = ["cut"] * 50
        second = await engine.generate(ask(session=session))
        cut = len(dying.bodies)
        third = await engine.generate(ask(session=session))
        left_alone = len(dying.bodies) == cut
        dying.plan = []
        for server in engine._servers:
            server.resting_until -= openai_.REST_S  # as if that time had passed
        fourth = await engine.generate(ask(session=session))
        await engine.close()
        return [r.text for r in (first, second, third, fourth)], left_alone

    texts, left_alone = asyncio.run(run())
    assert [alive.url in t for t in texts] == [False, True, True, False]
    assert left_alone


def test_when_every_server_is_dead_the_engine_is(fakes):
    first, second = fakes(), fakes()
    first.plan, second.plan = ["cut"] * 50, ["cut"] * 50
    found = play(engine_for(first, second, model="small"), *(ask(session=str(i)) for i in range(8)))
    assert all(isinstance(f, EngineError) for f in found)
    assert "--base-url" in str(found[0])


def test_an_engine_starts_again_after_it_was_closed(fakes):
    engine = engine_for(fakes(), model="small")
    assert play(engine, ask())[0].finish_reason == "stop"
    assert play(engine, ask())[0].finish_reason == "stop"
    with pytest.raises(EngineError):
        asyncio.run(engine.generate(ask()))


def test_one_server_that_answers_is_enough_to_start_again(fakes):
    alive, gone = fakes(), Fake()

    async def run():
        engine = engine_for(alive, gone, model="small")
        await engine.start()
        session = next(str(i) for i in range(99) if engine._pick(str(i)).url == gone.url)
        await engine.close()
        gone.die()
        await engine.start()
        reply = await engine.generate(ask(session=session))
        await engine.close()
        alive.die()
        with pytest.raises(EngineError, match="No server answers"):
            await engine.start()
        return reply.text

    assert alive.url in asyncio.run(run())


def test_an_argument_for_an_engine_in_this_process_is_wrong_usage():
    with pytest.raises(UsageProblem, match="--engine-arg"):
        OpenAIEngine(EngineOptions(base_urls=("http://localhost:1/v1",), engine_args=("seed=1",)))
