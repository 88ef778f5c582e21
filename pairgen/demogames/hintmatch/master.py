"""hintmatch: two players, one round. The hinter describes a secret word, the matcher picks it from a list.

Liberal: only the first line of a reply is read, and of a guess only the first word after `GUESS:`; text after that is
ignored. A reply without its tag, or with an empty one, aborts; naming the secret or guessing off the list loses.
"""

import math
import re
from typing import Any

from clemcore.backends import Model
from clemcore.clemgame import GameBenchmark, GameMaster, GameScorer, Player
from clemcore.clemgame.errors import GameError, ParseError, RuleViolationError
from clemcore.clemgame.master import DialogueGameMaster, Outcome
from clemcore.clemgame.metrics import BENCH_SCORE, METRIC_ABORTED, METRIC_LOSE, METRIC_SUCCESS

HINT_TAG = "HINT:"
GUESS_TAG = "GUESS:"


def read_line(response: str, tag: str) -> str:
    """What stands after the tag on the first line of a reply; ParseError says what is malformed otherwise."""
    line = response.strip().partition("\n")[0]
    if not line.startswith(tag):
        raise ParseError(f"the reply does not start with '{tag}'", response)
    text = line[len(tag) :].strip()
    if not words_of(text):
        raise ParseError(f"there is nothing after '{tag}'", response)
    return text


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


class Hinter(Player):
    """Describes the secret word; its scripted reply says only where the word stands in the list."""

    def __init__(self, model: Model, secret: str, options: list[str]) -> None:
        super().__init__(model)
        self.place = options.index(secret) + 1

    def _custom_response(self, context: dict[str, Any]) -> str:
        return f"{HINT_TAG} number {self.place} of your list"


class Matcher(Player):
    """Picks a word from the list; its scripted reply trusts the scripted hint."""

    def __init__(self, model: Model, options: list[str]) -> None:
        super().__init__(model)
        self.options = options

    def _custom_response(self, context: dict[str, Any]) -> str:
        place = re.findall(r"number (\d+)", context["content"])
        return f"{GUESS_TAG} {self.options[int(place[-1]) - 1 if place else 0]}"


class HintmatchMaster(DialogueGameMaster):
    """Passes the hint on and compares the guess with the secret."""

    def _on_setup(self, **instance: Any) -> None:
        self.secret: str = instance["secret"]
        self.options: list[str] = instance["options"]
        self.hinter = Hinter(self.player_models[0], self.secret, self.options)
        self.matcher = Matcher(self.player_models[1], self.options)
        prompt = self.experiment["hinter_prompt"].replace("$SECRET$", self.secret)
        self.add_player(self.hinter, initial_context=prompt.replace("$NOTES$", instance["notes"]))
        self.add_player(self.matcher)

    def _parse_response(self, player: Player, response: str) -> str:
        if player is self.hinter:
            return read_line(response, HINT_TAG)
        return words_of(read_line(response, GUESS_TAG))[0]

    def _advance_game(self, player: Player, parsed_response: str) -> None:
        if player is self.hinter:
            self._take_hint(parsed_response)
        else:
            self._take_guess(parsed_response)

    def _take_hint(self, hint: str) -> None:
        if any(word.startswith(self.secret) for word in words_of(hint)):
            raise RuleViolationError(f"the hint names the secret word '{self.secret}'", hint)
        self.log_to_self("valid hint", hint)
        prompt = self.experiment["matcher_prompt"].replace("$OPTIONS$", ", ".join(self.options))
        self.set_context_for(self.matcher, prompt.replace("$HINT$", hint))

    def _take_guess(self, guess: str) -> None:
        if guess not in self.options:
            raise RuleViolationError(f"'{guess}' is not on the list", guess)
        if guess == self.secret:
            self.log_to_self("correct guess", guess)
            self.state.succeed()
        else:
            self.log_to_self("wrong guess", guess)
            self.state.failed()

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


class HintmatchScorer(GameScorer):
    """100 for the secret word, 0 for another."""

    def compute_round_score(self, round_idx: int, round_events: list[dict[str, Any]]) -> None:
        pass

    def compute_episode_scores(self, interactions: dict[str, Any]) -> None:
        score = math.nan if interactions[METRIC_ABORTED] else 100 * interactions[METRIC_SUCCESS]
        self.log_episode_score(BENCH_SCORE, score)


class HintmatchBenchmark(GameBenchmark):
    """The game as clemcore finds it."""

    def create_game_master(self, experiment: dict[str, Any], player_models: list[Model]) -> GameMaster:
        return HintmatchMaster(self.game_spec, experiment, player_models)

    def create_game_scorer(self, experiment: dict[str, Any], game_instance: dict[str, Any]) -> GameScorer:
        return HintmatchScorer(self.game_name, experiment, game_instance)
