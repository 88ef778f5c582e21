"""The built-in games: every instance can be won, a malformed move aborts with its reason, the scorer tells outcomes."""

import ast
import copy
import json
import math
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pairgen import demogames

DEMO_GAMES = Path(demogames.__file__).parent
GAMES = ["hintmatch", "roundtrip", "wordweave"]
INSTANCES = [
    (game, experiment["name"], instance["game_id"])
    for game in GAMES
    for experiment in json.loads((DEMO_GAMES / game / "in" / "instances.json").read_text())["experiments"]
    for instance in experiment["game_instances"]
]
OUTCOMES = {"Success": "success", "Lose": "lose", "Aborted": "aborted"}


class Play:
    """One episode of an instance: replies go in, events and scores come out."""

    def __init__(self, game: str, experiment: str, game_id: int) -> None:
        from clemcore.backends.model_registry import CustomResponseModel
        from clemcore.clemgame import GameBenchmark, GameInstances, GameSpec
        from clemcore.clemgame.envs.pettingzoo.master import GameMasterEnv
        from clemcore.clemgame.recorder import GameInteractionsRecorder

        spec = GameSpec.from_directory(str(DEMO_GAMES / game))[0]
        self.benchmark = GameBenchmark.load_from_spec(spec)
        self.row = next(
            row
            for row in GameInstances.from_game_spec(spec)
            if (row["experiment"]["name"], row["game_instance"]["game_id"]) == (experiment, game_id)
        )
        self.env = GameMasterEnv(self.benchmark)
        models = [CustomResponseModel()] * spec.players
        self.env.reset(options={"player_models": models, **{k: self.row[k] for k in ("experiment", "game_instance")}})
        self.recorder = GameInteractionsRecorder(game, experiment, game_id, "", {})
        self.env.game_master.register(self.recorder)

    @property
    def prompt(self) -> str:
        return str(self.env.last()[0]["content"])

    @property
    def over(self) -> bool:
        return bool(self.env.last()[2])

    def say(self, *replies: str) -> "Play":
        for reply in replies:
            assert not self.over, f"the game was over before {reply!r}"
            self.env.step(reply)
        return self

    def perfect_reply(self) -> str:
        player = self.env.player_by_agent_id[self.env.agent_selection]
        return str(player(self.env.last()[0]))

    def say_perfectly(self) -> "Play":
        while not self.over:
            self.say(self.perfect_reply())
        return self

    @property
    def said_of_it(self) -> list[tuple[str, str]]:
        """What the game master noted to itself."""
        events = [event for turn in self.recorder.interactions["turns"] for event in turn]
        return [(e["action"]["type"], e["action"]["content"]) for e in events if e["from"] == e["to"] == "GM"]

    def scores(self) -> dict[str, Any]:
        scorer = self.benchmark.create_game_scorer(self.row["experiment"], self.row["game_instance"])
        scorer.compute_scores(self.recorder.interactions)
        return dict(scorer.scores["episode scores"])

    @property
    def outcome(self) -> str:
        scores = self.scores()
        (outcome,) = [name for key, name in OUTCOMES.items() if scores[key] == 1]
        return outcome


def wordweave(*words: str) -> str:
    return f"SENTENCE: Here are {' and '.join(words)}."


@pytest.fixture
def weave() -> tuple[Play, list[str]]:
    play = Play("wordweave", "three_words", 0)
    return play, play.row["game_instance"]["words"]


@pytest.mark.parametrize(("game", "experiment", "game_id"), INSTANCES)
def test_every_instance_can_be_won(game: str, experiment: str, game_id: int) -> None:
    play = Play(game, experiment, game_id)
    assert "$" not in play.prompt, "a placeholder of the template is left in the prompt"
    play.say_perfectly()
    assert play.outcome == "success"
    assert play.scores()["Main Score"] == 100


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_two_experiments_and_no_instance_twice(game: str) -> None:
    experiments = json.loads((DEMO_GAMES / game / "in" / "instances.json").read_text())["experiments"]
    assert len(experiments) == 2
    instances = [i for experiment in experiments for i in experiment["game_instances"]]
    contents = {json.dumps({k: v for k, v in i.items() if k != "game_id"}, sort_keys=True) for i in instances}
    assert 20 <= len(contents) == len(instances) <= 40
    for experiment in experiments:
        assert [i["game_id"] for i in experiment["game_instances"]] == list(range(len(experiment["game_instances"])))


def test_no_trip_is_another_one_in_a_different_order() -> None:
    rows = [Play(*key).row["game_instance"]["stops"] for key in INSTANCES if key[0] == "roundtrip"]
    trips = [frozenset(stop["country"] for stop in stops) for stops in rows]
    assert len(set(trips)) == len(trips)
    assert all(len(trip) == len(stops) for trip, stops in zip(trips, rows, strict=True))


@pytest.mark.parametrize("game", GAMES)
def test_the_generator_writes_the_same_bytes_again(game: str, tmp_path: Path) -> None:
    committed = (DEMO_GAMES / game / "in" / "instances.json").read_bytes()
    folder = tmp_path / game
    shutil.copytree(DEMO_GAMES / game, folder, ignore=shutil.ignore_patterns("in", "__pycache__"))
    runpy.run_path(str(folder / "instancegenerator.py"), run_name="__main__")
    assert (folder / "in" / "instances.json").read_bytes() == committed


@pytest.mark.parametrize("game", GAMES)
def test_a_game_needs_nothing_but_clemcore(game: str) -> None:
    for module in (DEMO_GAMES / game).glob("*.py"):
        tree = ast.walk(ast.parse(module.read_text()))
        names = {node.module for node in tree if isinstance(node, ast.ImportFrom)}
        names |= {a.name for node in tree if isinstance(node, ast.Import) for a in node.names}
        roots = {str(name).split(".")[0] for name in names}
        foreign = roots - {"clemcore"} - set(sys.stdlib_module_names)
        assert not foreign, f"{module.name} imports {foreign}"
        assert module.name == "instancegenerator.py" or "random" not in roots, "what is random belongs in the instances"


@pytest.mark.parametrize("game", GAMES)
def test_the_game_file_tells_what_clembench_tells(game: str) -> None:
    spec = json.loads((DEMO_GAMES / game / "clemgame.json").read_text())
    assert spec["game_name"] == spec["main_game"] == game
    assert spec["players"] == len(spec["roles"]) == len(Play(game, *first_of(game)).env.game_master.get_players())
    assert (spec["image"], spec["languages"], spec["benchmark"]) == ("none", ["en"], ["demo"])
    assert spec["description"]


def first_of(game: str) -> tuple[str, int]:
    return next((experiment, game_id) for name, experiment, game_id in INSTANCES if name == game)


MALFORMED = [
    ("wordweave", "The dog sleeps.", "does not start with 'SENTENCE: '"),
    ("wordweave", "sentence: The dog sleeps.", "does not start with 'SENTENCE: '"),
    ("wordweave", "Sure! SENTENCE: The dog sleeps.", "does not start with 'SENTENCE: '"),
    ("wordweave", "", "does not start with 'SENTENCE: '"),
    ("wordweave", "SENTENCE: The dog sleeps", "no end mark"),
    ("wordweave", "SENTENCE: ...", "the sentence is empty"),
    ("wordweave", "SENTENCE: The dog sleeps. I hope this helps!", "text after the end"),
    ("wordweave", "SENTENCE: The dog sleeps.\nIt is tired.", "more than one line"),
    ("wordweave", "SENTENCE: The dog sleeps.\n\nSENTENCE: The dog sleeps.", "more than one line"),
    ("roundtrip", "Rome", "does not start with 'STOP: '"),
    ("roundtrip", "STOP:", "does not start with 'STOP: '"),
    ("roundtrip", "STOP: ", "does not start with 'STOP: '"),
    ("roundtrip", "STOP: the city of Rome", "something else than one single name"),
    ("roundtrip", "STOP: Rome.", "something else than one single name"),
    ("roundtrip", "STOP: Rome STOP: Rome", "something else than one single name"),
    ("roundtrip", "STOP: Rome\nSTOP: Paris", "more than one line"),
    ("hintmatch", "It is a fruit.", "does not start with 'HINT:'"),
    ("hintmatch", "GUESS: banana", "does not start with 'HINT:'"),
    ("hintmatch", "Sure!\nHINT: It is a fruit.", "does not start with 'HINT:'"),
    ("hintmatch", "HINT:", "nothing after 'HINT:'"),
    ("hintmatch", "HINT: ?!\nIt is a fruit.", "nothing after 'HINT:'"),
]


@pytest.mark.parametrize(("game", "reply", "reason"), MALFORMED)
def test_a_malformed_move_aborts_with_its_reason(game: str, reply: str, reason: str) -> None:
    play = Play(game, *first_of(game)).say(reply)
    assert play.over
    kind, content = play.said_of_it[-1]
    assert kind == "invalid format"
    assert reason in content
    assert play.outcome == "aborted"
    scores = play.scores()
    assert math.isnan(scores["Main Score"])
    assert scores["Violated Request Count"] == 1


@pytest.mark.parametrize("reply", ["it is the first one", "GUESS:", "GUESS: 1", "HINT: It is a fruit."])
def test_a_malformed_guess_aborts_too(reply: str) -> None:
    play = Play("hintmatch", "far_words", 0).say("HINT: It is nice.", reply)
    assert play.said_of_it[-1][0] == "invalid format"
    assert play.outcome == "aborted"


def test_a_malformed_move_aborts_a_trip_that_went_well_so_far() -> None:
    play = Play("roundtrip", "near", 0)
    play.say(play.perfect_reply(), "I do not know.")
    assert play.outcome == "aborted"
    assert play.scores()["Right Names"] == 1


FILLER = ["I hope this helps!", "Let me know if you want another one.", "Thank you for playing with me."]


@pytest.mark.parametrize("filler", FILLER)
@pytest.mark.parametrize("gap", [" ", "\n", "\n\n"])
@pytest.mark.parametrize("game", ["roundtrip", "wordweave"])
def test_a_strict_game_takes_no_filler_after_a_move(game: str, gap: str, filler: str) -> None:
    play = Play(game, *first_of(game))
    play.say(play.perfect_reply() + gap + filler)
    assert play.outcome == "aborted"


@pytest.mark.parametrize("filler", FILLER)
@pytest.mark.parametrize("gap", [" ", "\n", "\n\n"])
def test_the_liberal_game_takes_filler_after_a_move(gap: str, filler: str) -> None:
    play = Play("hintmatch", "far_words", 0)
    while not play.over:
        play.say(play.perfect_reply() + gap + filler)
    assert play.outcome == "success"


@pytest.mark.parametrize("game", GAMES)
def test_white_space_around_a_move_does_not_matter(game: str) -> None:
    play = Play(game, *first_of(game))
    while not play.over:
        play.say(f" {play.perfect_reply()}\n")
    assert play.outcome == "success"


def test_a_sentence_that_misses_a_word_loses(weave: tuple[Play, list[str]]) -> None:
    play, words = weave
    play.say(wordweave(*words[:-1]))
    assert play.said_of_it[-1] == ("rule violation", f"the sentence misses: {words[-1]}")
    assert (play.outcome, play.scores()["Main Score"]) == ("lose", 0)


def test_a_word_inside_another_word_does_not_count(weave: tuple[Play, list[str]]) -> None:
    play, words = weave
    assert play.say(wordweave(*words[:-1], f"x{words[-1]}x")).outcome == "lose"


def test_a_sentence_that_is_too_long_loses(weave: tuple[Play, list[str]]) -> None:
    play, words = weave
    limit = play.row["experiment"]["max_words"]
    play.say(wordweave(*words, *["more"] * limit))
    assert "are allowed" in play.said_of_it[-1][1]
    assert play.outcome == "lose"


def test_the_case_of_the_words_does_not_matter(weave: tuple[Play, list[str]]) -> None:
    play, words = weave
    assert play.say(wordweave(*[word.upper() for word in words])).outcome == "success"


def test_the_hint_must_not_name_the_secret() -> None:
    secret = Play("hintmatch", "far_words", 0).row["game_instance"]["secret"]
    for hint in (f"It is {secret}.", f"Many {secret.upper()}S!"):
        play = Play("hintmatch", "far_words", 0).say(f"HINT: {hint}")
        assert play.said_of_it[-1] == ("rule violation", f"the hint names the secret word '{secret}'")
        assert play.outcome == "lose"


def test_the_hint_is_all_that_the_matcher_gets_to_know() -> None:
    play = Play("hintmatch", "far_words", 0).say("HINT: It is nice.\nNow let me tell you a story.")
    instance = play.row["game_instance"]
    assert '"It is nice."' in play.prompt
    assert "a story" not in play.prompt
    assert instance["notes"] not in play.prompt
    assert ", ".join(instance["options"]) in play.prompt


def test_a_wrong_guess_loses_and_so_does_one_off_the_list() -> None:
    instance = Play("hintmatch", "far_words", 0).row["game_instance"]
    other = next(word for word in instance["options"] if word != instance["secret"])
    for guess, kind in ((other, "wrong guess"), ("zebra", "rule violation")):
        play = Play("hintmatch", "far_words", 0).say("HINT: It is nice.", f"GUESS: {guess}")
        assert play.said_of_it[-1][0] == kind
        assert (play.outcome, play.scores()["Main Score"]) == ("lose", 0)


def test_a_wrong_name_gives_one_more_try_with_help() -> None:
    play = Play("roundtrip", "near", 0)
    first = play.row["game_instance"]["stops"][0]
    play.say("STOP: Nowhere")
    assert not play.over
    assert "wrong" in play.prompt
    assert " or ".join(first["names"]) in play.prompt
    assert first["country"] in play.prompt
    assert first["capital"] in first["names"]
    play.say_perfectly()
    assert play.outcome == "success"
    assert play.scores()["Main Score"] == 66.67


def test_the_second_wrong_name_at_a_stop_loses() -> None:
    play = Play("roundtrip", "near", 0).say("STOP: Nowhere", "STOP: Nowhere")
    assert play.said_of_it[-1][0] == "out of tries"
    assert (play.outcome, play.scores()["Main Score"]) == ("lose", 0)


def test_every_stop_has_a_second_try_of_its_own() -> None:
    play = Play("roundtrip", "far", 0)
    for stop in play.row["game_instance"]["stops"]:
        play.say("STOP: Nowhere", f"STOP: {stop['capital']}")
    assert play.outcome == "success"
    assert play.scores()["Main Score"] == 50


@pytest.mark.parametrize("game", GAMES)
def test_a_copied_game_goes_its_own_way_at_every_move(game: str) -> None:
    play = Play(game, *first_of(game))
    while not play.over:
        reply = play.perfect_reply()
        fork, twin = copy.deepcopy(play.env), copy.deepcopy(play.env)
        fork.step("a malformed move")
        assert fork.game_master.state.outcome.value == "aborted"
        twin.step(reply)
        play.say(reply)
        assert twin.game_master.state.outcome == play.env.game_master.state.outcome
        assert twin.last()[0] == play.env.last()[0]
    assert play.outcome == "success"
