"""Episodes are driven to their end through real game masters; whatever fails is one episode's own affair."""

import asyncio
import json
import os
import signal

import pytest

from pairgen.engines import Completion, Sampling
from pairgen.errors import EngineError, PairgenError, RequestError
from pairgen.records import EpisodeKey, Message
from pairgen.store import Journal, read_episodes
from pipelines import supervise
from pipelines.plan import make_plan
from pipelines.rollout import play_all
from pipelines.supervise import Supervised
from pipelines.workers import Setting


class Puppet:
    """An engine whose replies are a function of the prompt; real in all but the model."""

    name, model = "puppet", "puppet"

    def __init__(self, answer, latency=0.0):
        self.answer, self.latency = answer, latency
        self.requests, self.open, self.most_open, self.starts = [], 0, 0, 0

    async def start(self):
        self.starts += 1

    async def generate(self, request):
        self.requests.append(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(self.latency)
            text = self.answer(request)
        finally:
            self.open -= 1
        return Completion(text, "stop", 10, 3, 0, (1, 2, 3))

    async def close(self):
        pass


def wrong(request):
    """Names the wrong place on purpose: roundtrip lets the player try once more, so episodes have two moves."""
    return f" STOP: z{'x' * len(request.messages)}\n"


@pytest.fixture
def play(server, tmp_path):
    """Plays demo games (or those of a checkout) and returns the episodes in their order and the tally."""

    def play(
        engine, *, games=("roundtrip",), limit=4, concurrency=8, samples=1, meddle=None, checkout=None, run="run",
        partner="",
    ):  # fmt: skip
        return server.loop.run_until_complete(
            session(engine, games, limit, concurrency, samples, meddle, checkout, tmp_path / run, partner)
        )

    async def session(engine, games, limit, concurrency, samples, meddle, checkout, run, partner):
        run.mkdir()
        worker = await server.worker()
        where = checkout and str(checkout)
        catalog = await worker.ask("", op="catalog", clembench=where, cwd=str(run), selectors=list(games))
        await worker.close()
        assert "problem" not in catalog
        plan = make_plan(catalog["games"], limit=limit, samples=samples, seed=1, label="m", partner=partner)
        journal = Journal(run)
        setting = Setting("m", Sampling(), run / "clem", partner)
        if meddle:
            engine.meddle = asyncio.create_task(meddle())
        try:
            tally = await play_all(
                server, engine, catalog["games"], plan, setting, journal, concurrency=concurrency, on_episode=ignore
            )
        finally:
            journal.close()
        return read_episodes(run), tally

    return play


def ignore(*_):
    pass


def test_every_planned_episode_is_played_and_the_prompt_is_what_was_sent(play):
    engine = Puppet(wrong)
    episodes, tally = play(engine)
    assert [e.key for e in episodes] == sorted(e.key for e in episodes)
    assert len(episodes) == tally.episodes == 4
    sent = {request.messages for request in engine.requests}
    moves = [move for e in episodes for move in e.moves]
    assert {move.prompt for move in moves} == sent
    assert len(moves) == len(engine.requests) == tally.moves
    assert all(move.reply == move.raw_reply.strip() for move in moves)
    assert {e.outcome for e in episodes} == {"lose"}
    later = [e.moves[1] for e in episodes]
    assert all(m.prompt[1] == Message("assistant", e.moves[0].reply) for m, e in zip(later, episodes, strict=True))


def test_outcomes_are_those_of_clem_score(play, tmp_path):
    episodes, _ = play(Puppet(lambda r: "nothing that fits"), games=("demo",), limit=2)
    assert {e.outcome for e in episodes} == {"aborted"}
    assert all(e.moves[-1].violation for e in episodes)
    for e in episodes:
        folder = tmp_path / "run" / "clem" / "m" / e.game / e.experiment / f"instance_{e.task_id:05d}"
        scores = json.loads((folder / "scores.json").read_text())["episode scores"]
        assert scores["Aborted"] == 1
        assert {p.name for p in folder.iterdir()} >= {"instance.json", "interactions.json", "player_1.requests.json"}
        assert (folder.parent / "experiment.json").exists()


def test_open_requests_are_bounded_by_the_concurrency(play, tmp_path):
    engine = Puppet(wrong, latency=0.02)
    play(engine, limit=12, concurrency=5)
    assert engine.most_open == 5


def test_one_failing_request_ends_one_episode(play, tmp_path):
    def answer(request):
        if request.session.endswith("/1/0"):
            raise RequestError("context_exceeded", "the prompt has 9000 tokens, 8192 fit")
        return wrong(request)

    episodes, _ = play(Puppet(answer))
    failed = [e for e in episodes if e.outcome == "error"]
    assert {e.task_id for e in failed} == {1}
    assert {(e.fault.kind, e.fault.move) for e in failed} == {("context_exceeded", 0)}
    assert all(e.players for e in failed)
    assert {e.outcome for e in episodes if e.task_id != 1} == {"lose"}


def test_samples_of_one_instance_do_not_mix(play, tmp_path):
    episodes, _ = play(
        Puppet(lambda r: f"STOP: {'abc'[int(r.session[-1])]}{'x' * len(r.messages)}"), limit=2, samples=3
    )
    assert [e.sample for e in episodes] == [0, 1, 2] * 2
    assert all(m.reply.startswith(f"STOP: {'abc'[e.sample]}x") for e in episodes for m in e.moves)
    assert {p.name for p in (tmp_path / "run" / "clem").iterdir()} == {"m", "m.sample1", "m.sample2"}


def test_a_dead_engine_stops_the_run_and_what_was_finished_is_safe(play, tmp_path):
    def answer(request):
        if request.session.endswith("/1/0"):
            raise EngineError("the engine is gone")
        return wrong(request)

    with pytest.raises(EngineError, match="gone"):
        play(Puppet(answer), concurrency=1)
    assert 0 < len(read_episodes(tmp_path / "run")) < 4


def test_a_supervised_engine_is_revived_and_its_episodes_begin_anew(play, tmp_path):
    deaths = []

    def answer(request):
        if len(request.messages) == 3 and len(deaths) < 2:
            deaths.append(request.session)
            raise EngineError("out of memory")
        return wrong(request)

    engine, said = Puppet(answer), []
    episodes, _ = play(Supervised(engine, 2, said.append), concurrency=2)
    assert said == ["out of memory"] * len(said)
    assert engine.starts == len(said) > 0
    assert {e.outcome for e in episodes} == {"lose"}
    assert all([m.index for m in e.moves] == [0, 1] for e in episodes)


@pytest.mark.parametrize(("restarts", "survives"), [(3, True), (2, False)])
def test_an_engine_that_does_not_start_at_once_is_given_time(play, monkeypatch, restarts, survives):
    monkeypatch.setattr(supervise, "PAUSE_S", 0.01)
    requests = []

    def answer(request):
        requests.append(request)
        if len(requests) == 2:
            raise EngineError("the server is gone")
        return wrong(request)

    class Slow(Puppet):
        async def start(self):
            self.starts += 1
            if self.starts < 3:
                raise EngineError("nobody answers")

    engine, said = Slow(answer), []
    if survives:
        episodes, _ = play(Supervised(engine, restarts, said.append))
        assert {e.outcome for e in episodes} == {"lose"}
    else:
        with pytest.raises(EngineError, match="nobody answers"):
            play(Supervised(engine, restarts, said.append))
    assert (engine.starts, len(said)) == (restarts, restarts)


def test_an_attempt_that_did_not_count_leaves_nothing_in_the_results(play, tmp_path):
    results = tmp_path / "run" / "clem" / "m" / "roundtrip" / "near"

    def answer(request):
        (results / "instance_00000").mkdir(parents=True, exist_ok=True)
        (results / "instance_00000" / "player_2.requests.json").write_text("{}")
        return wrong(request)

    play(Puppet(answer), limit=1)
    found = sorted(str(p.relative_to(results)) for p in results.rglob("*.*"))
    files = ("instance.json", "interactions.json", "player_1.requests.json", "scores.json")
    assert found == ["experiment.json", *(f"instance_00000/{name}" for name in files)]


def test_a_killed_worker_costs_no_episode(play, tmp_path):
    engine = Puppet(wrong, latency=0.05)

    async def kill_once():
        while True:
            await asyncio.sleep(0.01)
            found = [p for p in os.popen("ps -eo pid,ppid,args").read().splitlines() if "pairgen.clem.server" in p]
            parents = {line.split()[1] for line in found}
            children = [line.split()[0] for line in found if line.split()[1] in {p.split()[0] for p in found}]
            if len(engine.requests) > 3 and children and parents:
                os.kill(int(children[0]), signal.SIGKILL)
                return

    episodes, _ = play(engine, limit=12, concurrency=4, meddle=kill_once)
    assert engine.meddle.done()
    assert len({e.key for e in episodes}) == 12
    assert {e.outcome for e in episodes} == {"lose"}
    assert all([m.index for m in e.moves] == [0, 1] for e in episodes)


@pytest.mark.parametrize(("deaths", "answered"), [(2, True), (3, False)])
def test_a_question_goes_to_another_worker_where_one_is_killed(server, monkeypatch, deaths, answered):
    killed, fresh = [], server.worker

    def children():
        return set(os.popen(f"ps -o pid= --ppid {server._process.pid}").read().split())

    async def doomed():
        before = children()
        worker = await fresh()
        while len(killed) < deaths:
            for pid in children() - before:
                os.kill(int(pid), signal.SIGKILL)
                killed.append(pid)
                return worker
            await asyncio.sleep(0.01)
        return worker

    monkeypatch.setattr(server, "worker", doomed)
    asked = server.ask(op="catalog", clembench=None, cwd=".", selectors=["roundtrip"])
    if answered:
        assert [g["game"] for g in server.loop.run_until_complete(asked)["games"]] == ["roundtrip"]
    else:
        with pytest.raises(PairgenError, match=r"ended 3 times.*games\.log"):
            server.loop.run_until_complete(asked)


BROKEN = {
    "setup": "    def _on_setup(self, **i):\n        raise KeyError('word')",
    "play": "    def _advance_game(self, player, text):\n        raise ZeroDivisionError('no words')",
}


@pytest.mark.parametrize("stage", BROKEN)
def test_a_game_that_raises_is_reported_and_the_others_go_on(play, tmp_path, stage):
    import shutil

    from pairgen.clem.client import DEMO_GAMES

    checkout = tmp_path / "checkout"
    for name in ("roundtrip", "wordweave"):
        shutil.copytree(DEMO_GAMES / name, checkout / name)
    master = checkout / "roundtrip" / "master.py"
    end = "\n\nclass RoundtripScorer"
    assert end in master.read_text()
    master.write_text(master.read_text().replace(end, f"\n\n{BROKEN[stage]}{end}", 1))

    episodes = {e.key: e for e in play(Puppet(wrong), games=("all",), limit=2, checkout=checkout)[0]}
    assert len(episodes) == 4
    for key, episode in episodes.items():
        if key.game == "wordweave":
            assert episode.outcome == "aborted"
        else:
            assert (episode.outcome, episode.fault.kind) == ("error", f"game_{stage}")
            assert ("KeyError" if stage == "setup" else "ZeroDivisionError") in episode.fault.message


def test_where_a_game_scripts_all_but_one_player_that_one_is_the_learners(play, tmp_path):
    """As in privateshared and cloudgame: two players, of which a model speaks for one."""
    import shutil

    from pairgen.clem.client import DEMO_GAMES

    checkout = tmp_path / "checkout"
    shutil.copytree(DEMO_GAMES / "hintmatch", checkout / "hintmatch")
    master = checkout / "hintmatch" / "master.py"
    text = master.read_text().replace("import Model", "import CustomResponseModel, Model", 1)
    scripted = text.replace("Hinter(self.player_models[0]", "Hinter(CustomResponseModel()", 1)
    assert scripted != text
    master.write_text(scripted)
    engine = Puppet(lambda r: "GUESS: bread")
    episodes, _ = play(engine, games=("hintmatch",), limit=4, checkout=checkout, partner="p")
    assert len(episodes) == 4
    assert {(p.name, p.model, p.learner) for e in episodes for p in e.players} == {
        ("Player 1", "programmatic", True), ("Player 2", "m", True),
    }  # fmt: skip
    assert {m.model for e in episodes for m in e.moves} == {"m"}
    assert not any(request.bare for request in engine.requests)
    assert {p.name for p in (tmp_path / "run" / "clem").iterdir()} == {"m"}
    found = json.loads(next((tmp_path / "run" / "clem").rglob("interactions.json")).read_text())
    assert [m["model_spec"]["model_name"] for m in found["player_models"].values()] == ["m"]


def test_the_same_play_is_recorded_the_same(play):
    first, second = (play(Puppet(wrong), games=("demo",), concurrency=n, run=f"run{n}")[0] for n in (1, 3))
    assert first == second
    assert isinstance(first[0].key, EpisodeKey)
