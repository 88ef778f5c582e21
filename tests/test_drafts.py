"""Answers are asked for once, kept at once, and found again by whoever goes on after a kill."""

import asyncio
import dataclasses

import pytest

from pairgen.engines import Completion, EngineOptions
from pairgen.engines.scripted import ScriptedEngine
from pairgen.errors import EngineError, EngineRestarted, RequestError
from pairgen.records import Message
from pairgen.strategy import Ask, Draft
from pipelines.drafts import Answerer, Answers, ask_all, taken, use_of
from pipelines.errands import errand

ANSWERER = Answerer("model", "tiny", "id", EngineOptions(concurrency=4), temperature=0.7, top_p=0.9)
JUDGE = Answerer("judge", "wise", "id2", EngineOptions(concurrency=2), price=(1.0, 10.0))


def errands(count, asked="model", **fields):
    asks = (Ask((Message("user", f"number {i}"),), 9, **fields) for i in range(count))
    return [errand(asked, f"episode {i}", ask) for i, ask in enumerate(asks)]


def ask(reply, wanted, answerer=ANSWERER, notebook=None):
    found = {}

    def note(errand, draft):
        found[errand.name] = draft
        if notebook is not None:
            notebook.add(answerer.key(errand), draft)

    asyncio.run(ask_all(ScriptedEngine(reply), answerer, wanted, note))
    return found


def test_each_errand_gets_its_answer_and_the_counts():
    wanted = errands(20)
    found = ask(lambda r: r.messages[-1].content + " indeed", wanted)
    assert [found[e.name] for e in wanted] == [Draft(f"number {i} indeed", "stop", 2, 3, "tiny") for i in range(20)]


def test_what_is_sent_is_what_was_asked_for():
    sent = []
    given = {"min_tokens": 3, "seed": 5, "go_on": True}
    ask(lambda r: sent.append(r) or "x", [*errands(1, **given), *errands(1, temperature=0.0)])
    one, other = (r.sampling for r in sent)
    assert (one.min_tokens, one.max_tokens, one.seed, one.temperature, one.top_p) == (3, 9, 5, 0.7, 0.9)
    assert [r.go_on for r in sent] == [True, False] and sent[0].session == "episode 0"
    assert other.temperature == 0.0


def test_no_more_are_open_than_allowed():
    open_now, most = 0, 0

    class Counting(ScriptedEngine):
        async def generate(self, request):
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0.001)
            open_now -= 1
            return Completion("x", "stop", 1, 1)

    asyncio.run(ask_all(Counting(), ANSWERER, errands(30), lambda e, d: None))
    assert most == 4


def test_a_request_that_fails_is_no_answer_and_the_others_are(tmp_path):
    def reply(request):
        if request.messages[-1].content == "number 1":
            raise RequestError("timeout", "too slow")
        return "x"

    notebook = Answers(tmp_path / "d")
    found = ask(reply, errands(3), notebook=notebook)
    assert [d.problem for d in found.values()].count("timeout") == 1
    assert len(Answers(tmp_path / "d").known) == 2


def test_an_engine_that_was_restarted_is_asked_again():
    failures = [EngineRestarted(), EngineRestarted()]

    def reply(request):
        if failures:
            raise failures.pop()
        return "x"

    assert [d.text for d in ask(reply, errands(2)).values()] == ["x", "x"]


def test_after_a_kill_only_what_is_missing_is_asked(tmp_path):
    """The engine dies after some answers, and the last line is torn as a kill tears it."""
    path, wanted, count = tmp_path / "drafts.jsonl", errands(10), [0]

    def dying(request):
        count[0] += 1
        if count[0] > 6:
            raise EngineError("it is dead")
        return f"first {request.messages[-1].content} é"

    with pytest.raises(EngineError):
        ask(dying, wanted, notebook=Answers(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    known = Answers(path).known
    owed = [e for e in wanted if ANSWERER.key(e) not in known]
    assert 5 <= len(owed) <= 9
    ask(lambda r: "second", owed, notebook=Answers(path))
    found = taken(ANSWERER, wanted, Answers(path).known)
    assert [found[e.name].text.split()[0] for e in wanted].count("second") == len(owed)
    assert len(found) == 10


def test_an_answer_belongs_to_who_gave_it_and_how_it_was_asked():
    (one,), (other,) = errands(1), errands(1, seed=2)
    renamed = dataclasses.replace(ANSWERER, name="another name", options=EngineOptions(base_urls=("http://x/v1",)))
    assert ANSWERER.key(one) == renamed.key(one) != ANSWERER.key(other)
    for change in ({"identity": "other"}, {"temperature": 0.8}, {"top_p": 1.0}):
        assert dataclasses.replace(ANSWERER, **change).key(one) != ANSWERER.key(one)
    assert taken(renamed, [one], {ANSWERER.key(one): Draft("x", "stop", 1, 1, "old")})[one.name].by == "another name"


def test_what_it_cost_counts_answers_alone():
    drafts = [Draft("a", "stop", 400_000, 10_000, "wise"), Draft("b", "stop", 100_000, 0, "wise")]
    use = use_of(JUDGE, [*drafts, Draft("", "", 9, 9, "wise", "timeout")])
    assert (use.replies, use.prompt_tokens, use.completion_tokens, use.cost) == (2, 500_000, 10_000, 0.6)
    assert use_of(ANSWERER, drafts).cost is None


@pytest.mark.parametrize("line", [b"{}", b"[]", b'["key"]', b"\xff\xfe", b'["key", "a", "b"]', b"7"])
def test_a_line_that_is_none_is_passed_over(tmp_path, line):
    (tmp_path / "d").write_bytes(line + b"\n")
    notebook = Answers(tmp_path / "d")
    notebook.add("k", Draft("é\ud800", "stop", 1, 1, "m"))
    assert Answers(tmp_path / "d").known == {"k": Draft("é\ud800", "stop", 1, 1, "m")}
