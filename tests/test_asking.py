"""ramble and corrected as a person calls them: who is asked, what it costs, what is kept, and that it is asked once."""

import dataclasses
import json
from pathlib import Path

import datasets
import pytest
from click.testing import CliRunner
from factories import make_episode, make_episodes, make_move, write_run
from test_engines_openai import Fake

from pairgen import store
from pairgen.clem.client import DEMO_GAMES
from pairgen.cli import main
from pairgen.errors import UsageProblem
from pairgen.records import Episode, Message, Player, instance_hash
from pipelines.answerers import Answering, check_judge, check_model, read_price
from pipelines.pairset import read_drops, read_pairs

ILLEGAL = "invalid format: the reply does not start with 'STOP: '"
SCRIPT = {"replies": [{"last": "turn", "reply": [" and that is why.", " as you know.", " or so I think."]}]}


@pytest.fixture(autouse=True)
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRGEN_NO_PROGRESS", "1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def call(*args):
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def summary(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def configure(run, **config):
    store.write_json(Path(run) / store.CONFIG, {"command": "rollout", "config": config})


@pytest.fixture
def played(tmp_path):
    """A run that the scripted engine played, with its script."""
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    run = write_run(tmp_path / "run", make_episodes(tasks=6))
    configure(run, model=str(tmp_path / "script.json"), engine="scripted", temperature=0.0, top_p=1.0, max_tokens=30)
    return run


RAMBLE = ("corrupt", "run", "--strategy", "ramble:min_tokens=2", "--no-verify", "--json")


def test_the_model_that_played_is_asked_and_the_set_says_so(played):
    told = summary(call(*RAMBLE, "--no-eval-split", "--out", "pairs"))
    pairs = read_pairs(Path("pairs"))
    assert told["pairs"] == len(pairs) == 48
    for pair in pairs:
        assert pair.rejected[0].content.startswith(pair.chosen[0].content + " ")
        assert (pair.strategy, pair.detail, pair.outcome) == ("ramble", "continue", "success")
    assert len({p.rejected[0].content.removeprefix(p.chosen[0].content) for p in pairs}) == 3
    (use,) = told["drafts"]
    assert (use["asked"], use["by"], use["replies"], use["cost"]) == ("model", "script.json", 48, None)
    assert use["completion_tokens"] >= 96
    card = Path("pairs/README.md").read_text()
    assert "48 replies were asked of the model `script.json`" in card and str(played.parent) not in card
    assert str(played.parent) not in Path("pairs/manifest.json").read_text()


def test_answers_lie_beside_the_run_of_their_episode_whatever_runs_are_taken_together(played, tmp_path, monkeypatch):
    episodes = make_episodes(tasks=6)
    for name, part in (("a", episodes[::2]), ("b", episodes[1::2])):
        write_run(tmp_path / name, part)
        (tmp_path / name / "run.json").write_bytes((played / "run.json").read_bytes())
    ramble = ("--strategy", "ramble:min_tokens=2", "--no-verify", "--json", "--no-eval-split", "--out")
    summary(call("corrupt", "b", "a", *ramble, "both"))
    monkeypatch.setattr("pipelines.asking.make_engine", lambda options: pytest.fail("an engine was made"))
    for name, runs in (("again", ("a", "b")), ("one", ("a",)), ("other", ("b",))):
        assert summary(call("corrupt", *runs, *ramble, name))["pairs"]


def test_what_is_known_is_not_asked_again_and_gives_the_same_bytes(played, monkeypatch):
    summary(call(*RAMBLE, "--no-eval-split", "--out", "one"))
    monkeypatch.setattr("pipelines.asking.make_engine", lambda options: pytest.fail("an engine was made"))
    result = call(*RAMBLE, "--no-eval-split", "--out", "two")
    assert "48 known from before, 0 asked for" in result.stderr
    assert content("one") == content("two")


def test_after_a_kill_the_rest_is_asked_and_the_bytes_are_those_of_one_go(played):
    summary(call(*RAMBLE, "--no-eval-split", "--out", "one"))
    notebook = played / "drafts.jsonl"
    lines = notebook.read_bytes().splitlines(keepends=True)
    notebook.write_bytes(b"".join(lines[:20]) + lines[20][:30])
    result = call(*RAMBLE, "--no-eval-split", "--out", "two")
    assert "20 known from before, 28 asked for" in result.stderr
    assert content("one") == content("two")


def test_nobody_is_asked_about_an_evaluation_instance(played):
    keys = [{"game": g, "experiment": "high_en", "task_id": t} for g in ("taboo", "wordle") for t in range(2)]
    Path("keys.jsonl").write_text("".join(json.dumps(k) + "\n" for k in keys))
    told = summary(call(*RAMBLE, "--eval-keys", "keys.jsonl", "--out", "pairs"))
    assert told["pairs"] == 32 == len((played / "drafts.jsonl").read_text().splitlines())
    assert {(d.stage, d.reason) for d in read_drops(Path("pairs")) if d.task_id < 2 and d.strategy} == {
        ("corrupt", "eval_key")
    }


def test_a_request_that_fails_is_a_drop_with_its_reason(played):
    Path("script.json").write_text(json.dumps({"replies": [{"last": "taboo", "error": "timeout"}, *SCRIPT["replies"]]}))
    told = summary(call(*RAMBLE, "--no-eval-split", "--out", "pairs"))
    assert (told["pairs"], told["dropped"]["the model gave no reply timeout"]) == (24, 24)
    assert told["drafts"][0]["replies"] == 24


def test_a_model_that_is_not_here_or_not_known_is_told_before_any_work(played):
    configure("run", model="/models/tiny")
    result = call(*RAMBLE, "--no-eval-split", "--out", "pairs")
    assert result.exit_code == 2 and "/models/tiny" in result.stderr and "--model FOLDER" in result.stderr
    configure("run")
    result = call(*RAMBLE, "--no-eval-split", "--out", "pairs")
    assert result.exit_code == 2 and "--model" in result.stderr and not Path("pairs").exists()
    told = summary(call(*RAMBLE, "--no-eval-split", "--out", "pairs", "--model", "script.json", "--engine", "scripted"))
    assert told["pairs"] == 48
    assert "--model script.json" in Path("pairs/README.md").read_text()


def test_the_model_is_served_as_in_the_run_unless_another_way_is_said(tmp_path):
    config = {"model": "me/tiny", "engine": "openai", "base_url": ["http://a/v1"], "revision": "abc", "seed": 7,
              "chat_template_kwargs": ["enable_thinking=false"], "temperature": 0.9, "top_p": 0.8}  # fmt: skip
    run = write_run(tmp_path / "run", [])
    configure(run, **config)
    own = check_model(Answering(), [run])
    assert (own.options.name, own.options.base_urls, own.options.revision) == ("openai", ("http://a/v1",), "abc")
    assert (own.temperature, own.top_p, own.options.chat_template_kwargs) == (0.9, 0.8, ("enable_thinking=false",))
    here = check_model(Answering(engine="vllm", engine_arg=("seed=1",)), [run])
    assert (here.options.name, here.options.base_urls, here.options.engine_args) == ("vllm", (), ("seed=1",))
    assert here.identity == own.identity
    there = check_model(Answering(base_url=("http://b/v1",)), [run])
    assert (there.options.name, there.options.base_urls, there.identity) == ("auto", ("http://b/v1",), own.identity)
    assert check_model(Answering(model="me/other"), [run]).identity != own.identity
    configure(run, **{**config, "temperature": 0.0})
    assert check_model(Answering(), [run]).temperature == 0.7
    other = write_run(tmp_path / "other", [])
    configure(other, model="me/another")
    with pytest.raises(UsageProblem, match=r"me/another, me/tiny.*--model"):
        check_model(Answering(), [run, other])


def test_a_server_names_the_model_that_was_not_named(tmp_path):
    run = write_run(tmp_path / "run", [])
    configure(run, model="", base_url=["http://a/v1"])
    store.write_json(run / store.MANIFEST, {"model": "served"})
    assert check_model(Answering(), [run]).options.model == "served"


def test_a_judge_is_named_with_its_server_or_the_environment_says_where(monkeypatch):
    judge = check_judge(Answering(judge="org/wise@2:x@http://h:1/v1", judge_price="1,2"))
    assert (judge.name, judge.options.model) == ("wise_2_x", "org/wise@2:x")
    assert (judge.options.base_urls, judge.price) == (("http://h:1/v1",), (1.0, 2.0))
    for said in ("", "wise", "wise@host:1"):
        with pytest.raises(UsageProblem, match="--judge"):
            check_judge(Answering(judge=said))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env/v1")
    assert check_judge(Answering(judge="wise")).options.base_urls == ("http://env/v1",)
    assert check_judge(Answering(judge="wise")).identity == check_judge(Answering(judge="wise@http://x/v1")).identity


@pytest.mark.parametrize("text", ["1", "1,2,3", "a,b", "-1,2", "nan,1", "inf,1"])
def test_a_price_is_two_numbers(text):
    with pytest.raises(UsageProblem, match="--judge-price"):
        read_price(text)


def aborted_trips(count):
    """Roundtrips whose first move is illegal, as a rollout records them."""
    data = json.loads((DEMO_GAMES / "roundtrip" / "in" / "instances.json").read_text())["experiments"][0]
    for number, instance in enumerate(data["game_instances"][:count]):
        task = data["task"].replace("$COUNTRY$", instance["stops"][0]["country"])
        prompt = (Message("user", data["prompt"].replace("$TASK$", task)),)
        move = make_move(0, reply=f"I travel to city {number}.", violation=ILLEGAL, player="Player 1", role="Traveller")
        move = dataclasses.replace(move, prompt=prompt, raw_reply=move.reply)
        yield Episode(
            "roundtrip", data["name"], instance["game_id"], 0, 0, "aborted", None,
            (Player("Player 1", "Traveller", "m"),), (move,), None, instance_hash("roundtrip", instance), "", "rollout",
        )  # fmt: skip


class Judge(Fake):
    """Answers by the number of the city in the illegal move."""

    SAYS = ("STOP: Rome", "```\nSTOP: Oslo\n```", "Rome, of course", "I travel to city 3.", "I'm sorry, I can't.", "")

    def answer(self, body):
        asked = body["messages"][-1]["content"]
        (number,) = [i for i in range(len(self.SAYS)) if f"I travel to city {i}." in asked]
        data = super().answer(body)
        data["choices"][0]["message"]["content"] = self.SAYS[number]
        return data


@pytest.fixture
def judge():
    made = Judge(models=("wise",))
    yield made
    made.die()


def test_a_judge_corrects_illegal_moves_and_the_game_master_has_the_last_word(tmp_path, judge):
    write_run(tmp_path / "run", list(aborted_trips(6)))
    options = ("--strategy", "corrected", "--judge", f"wise@{judge.url}", "--judge-price", "1000,0", "--no-eval-split")
    told = summary(call("corrupt", "run", *options, "--out", "one", "--json"))
    pairs = read_pairs(Path("one"))
    assert {(p.chosen[0].content, p.rejected[0].content) for p in pairs} == {
        ("STOP: Rome", "I travel to city 0."), ("STOP: Oslo", "I travel to city 1."),
    }  # fmt: skip
    for pair in pairs:
        assert (pair.chosen_verdict, pair.rejected_verdict, pair.rejected_reason) == ("accepted", "violation", ILLEGAL)
        assert (pair.outcome, pair.detail, pair.main_score) == ("aborted", "judge/wise", None)
    assert told["dropped"] == {
        "chosen_violation": 1, "the judge refused": 1, "the judge repeated the move": 1, "the judge said nothing": 1,
    }  # fmt: skip
    assert [(s["stage"], s["entered"], s["kept"]) for s in told["funnel"]] == [
        ("harvest_aborted", 6, 6), ("corrupt", 6, 3), ("decontaminate", 3, 3), ("verify", 3, 2), ("dedup", 2, 2),
    ]  # fmt: skip
    assert told["drafts"] == [
        {"asked": "judge", "by": "wise", "replies": 6, "prompt_tokens": 42, "completion_tokens": 18, "cost": 0.042}
    ]
    card = Path("one/README.md").read_text()
    assert "`chosen` the correction of that move by\nthe judge model `wise`" in card and "cost 0.042" in card
    assert "there the set is not on-policy" in card and judge.url not in card
    assert len(judge.bodies) == 6 and all(body["temperature"] == 0 for body in judge.bodies)
    judge.die()
    summary(call("corrupt", "run", *options, "--out", "two", "--json"))
    assert len(judge.bodies) == 6 and content("one") == content("two")


def test_without_a_game_master_no_judge_is_paid(tmp_path, judge):
    write_run(tmp_path / "run", make_episodes(tasks=2, outcome="aborted"))
    options = ("--strategy", "corrected", "--judge", f"wise@{judge.url}", "--no-eval-split", "--out", "pairs")
    result = call("corrupt", "run", *options)
    assert result.exit_code == 2 and "--clembench" in result.stderr
    result = call("corrupt", "run", *options, "--no-verify")
    assert result.exit_code == 2 and "leave out --no-verify" in result.stderr
    assert judge.bodies == [] and not Path("pairs").exists()


def test_a_judge_that_does_not_answer_is_told_with_its_own_option(tmp_path):
    write_run(tmp_path / "run", list(aborted_trips(1)))
    gone = Judge()
    gone.die()
    result = call(
        "corrupt", "run", "--strategy", "corrected", "--judge", f"wise@{gone.url}", "--no-eval-split", "--out", "pairs"
    )
    assert result.exit_code == 1 and "--judge MODEL@URL" in result.stderr and gone.url in result.stderr


def test_the_funnel_says_why_no_move_could_be_corrected(tmp_path, judge):
    won, silent, early = (next(iter(aborted_trips(1))) for _ in range(3))
    won = dataclasses.replace(won, outcome="success")
    silent = dataclasses.replace(silent, sample=1, moves=(dataclasses.replace(silent.moves[0], violation=""),))
    early = dataclasses.replace(
        early, sample=2, moves=(early.moves[0], dataclasses.replace(early.moves[0], index=1, finish_reason="length"))
    )
    write_run(tmp_path / "run", [won, silent, early])
    options = ("--strategy", "corrected", "--judge", f"wise@{judge.url}", "--no-eval-split", "--out", "pairs", "--json")
    result = call("corrupt", "run", *options)
    assert result.exit_code == 1 and "no_violation" in result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    assert told["dropped"] == {"before_abort": 1, "no_violation": 1, "unfinished": 1}
    assert told["funnel"][0]["entered"] == 3 and judge.bodies == []


@pytest.mark.model
def test_a_real_model_goes_on_past_its_end(smollm2, tmp_path):
    """Of every won move, the rejected side is the model's own and longer, and no special token is in it."""
    from transformers import AutoTokenizer

    asked = "Answer with one word in the form ANSWER: word. What is the capital of {}?"
    cities = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid"}
    moves = [
        make_move(0, reply=f"ANSWER: {city}", prompt=asked.format(country), completion_tokens=4)
        for country, city in cities.items()
    ]
    run = write_run(tmp_path / "run", [make_episode(task, moves=[move]) for task, move in enumerate(moves)])
    configure(run, model=str(smollm2), engine="transformers", temperature=0.0, top_p=1.0)
    options = ("--strategy", "ramble:min_tokens=20:max_tokens=24", "--no-verify", "--no-eval-split", "--out", "pairs")
    assert summary(call("corrupt", "run", *options, "--json"))["drafts"][0]["replies"] == 3
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    pairs = read_pairs(Path("pairs"))
    assert {pair.chosen[0].content for pair in pairs} == {f"ANSWER: {city}" for city in cities.values()}
    for pair in pairs:
        added = pair.rejected[0].content.removeprefix(pair.chosen[0].content)
        assert len(pair.rejected[0].content) > len(added) and len(tokenizer(added)["input_ids"]) >= 18
        assert not any(token in added for token in tokenizer.all_special_tokens)
