"""wordweave: one move, one player. A sentence has to hold all given words and stay short.

Strict: the whole reply is one line, `SENTENCE: ` and exactly one sentence; anything before or after it aborts the game.
A well-formed sentence that misses a word, or is too long, loses.
"""

import math
import re
from typing import Any

from clemcore.backends import Model
from clemcore.clemgame import GameBenchmark, GameMaster, GameScorer, Player
from clemcore.clemgame.errors import GameError, ParseError, RuleViolationError
from clemcore.clemgame.master import DialogueGameMaster, Outcome
from clemcore.clemgame.metrics import BENCH_SCORE, METRIC_ABORTED, METRIC_LOSE, METRIC_SUCCESS

TAG = "SENTENCE: "


def read_sentence(response: str) -> str:
    """The sentence of a well-formed reply; ParseError says what is malformed otherwise."""
    reply = response.strip()
    if not reply.startswith(TAG):
        raise ParseError(f"the reply does not start with '{TAG}'", response)
    if "\n" in reply:
        raise ParseError("the reply has more than one line", response)
    sentence = reply[len(TAG) :]
    end = re.search(r"[.!?]+", sentence)
    if end is None:
        raise ParseError("the sentence has no end mark", response)
    if end.end() != len(sentence):
        raise ParseError("there is text after the end of the sentence", response)
    if not re.search(r"\w", sentence):
        raise ParseError("the sentence is empty", response)
    return sentence


def words_of(sentence: str) -> list[str]:
    return re.findall(r"[a-z0-9'-]+", sentence.lower())


class Weaver(Player):
    """Writes the sentence; its scripted reply is a perfect one."""

    def __init__(self, model: Model, words: list[str]) -> None:
        super().__init__(model)
        self.words = words

    def _custom_response(self, context: dict[str, Any]) -> str:
        return f"{TAG}Here are {' and '.join(self.words)}."


class WordweaveMaster(DialogueGameMaster):
    """Judges the single move."""

    def _on_setup(self, **instance: Any) -> None:
        self.words: list[str] = instance["words"]
        self.max_words: int = self.experiment["max_words"]
        prompt = self.experiment["prompt"].replace("$WORDS$", ", ".join(self.words))
        prompt = prompt.replace("$MAX_WORDS$", str(self.max_words))
        self.add_player(Weaver(self.player_models[0], self.words), initial_context=prompt)

    def _parse_response(self, player: Player, response: str) -> str:
        return read_sentence(response)

    def _advance_game(self, player: Player, parsed_response: str) -> None:
        used = words_of(parsed_response)
        if missing := [word for word in self.words if word not in used]:
            raise RuleViolationError(f"the sentence misses: {', '.join(missing)}", parsed_response)
        if len(used) > self.max_words:
            reason = f"the sentence has {len(used)} words, {self.max_words} are allowed"
            raise RuleViolationError(reason, parsed_response)
        self.log_to_self("correct sentence", parsed_response)
        self.state.succeed()

    def _on_parse_error(self, error: ParseError) -> None:
        self.log_to_self("invalid format", error.reason)
        self.state.abort()

    def _on_game_error(self, error: GameError) -> None:
        self.log_to_self("rule violation", error.reason)
        self.state.failed()

    def _on_after_game(self) -> None:
        self.log_key(METRIC_ABORTED, int(self.state.outcome is Outcome.ABORTED))
        self.log_key(METRIC_LOSE, int(self.state.outcome is Outcome.FAILURE))
        self.log_key(METRIC_SUCCESS, int(self.state.outcome is Outcome.SUCCESS))


class WordweaveScorer(GameScorer):
    """100 for a sentence that holds, 0 for one that does not."""

    def compute_round_score(self, round_idx: int, round_events: list[dict[str, Any]]) -> None:
        pass

    def compute_episode_scores(self, interactions: dict[str, Any]) -> None:
        score = math.nan if interactions[METRIC_ABORTED] else 100 * interactions[METRIC_SUCCESS]
        self.log_episode_score(BENCH_SCORE, score)


class WordweaveBenchmark(GameBenchmark):
    """The game as clemcore finds it."""

    def create_game_master(self, experiment: dict[str, Any], player_models: list[Model]) -> GameMaster:
        return WordweaveMaster(self.game_spec, experiment, player_models)

    def create_game_scorer(self, experiment: dict[str, Any], game_instance: dict[str, Any]) -> GameScorer:
        return WordweaveScorer(self.game_name, experiment, game_instance)
