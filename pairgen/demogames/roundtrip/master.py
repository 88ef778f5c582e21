"""roundtrip: one player, several moves. At every stop the player names the capital of a country to travel on.

Strict: the whole reply is `STOP: ` and one name; anything else aborts. A wrong name is legal: the player is told
two names, one of them right, and tries once more. The second wrong name at a stop loses.
"""

import math
import re
from typing import Any

from clemcore.backends import Model
from clemcore.clemgame import GameBenchmark, GameMaster, GameScorer, Player
from clemcore.clemgame.errors import ParseError
from clemcore.clemgame.master import DialogueGameMaster, Outcome
from clemcore.clemgame.metrics import BENCH_SCORE, METRIC_ABORTED, METRIC_LOSE, METRIC_SUCCESS

TAG = "STOP: "
TRIES = 2
KEY_RIGHT = "Right Names"
KEY_WRONG = "Wrong Names"


def read_name(response: str) -> str:
    """The name in a well-formed reply; ParseError says what is malformed otherwise."""
    reply = response.strip()
    if not reply.startswith(TAG):
        raise ParseError(f"the reply does not start with '{TAG}'", response)
    if "\n" in reply:
        raise ParseError("the reply has more than one line", response)
    name = reply[len(TAG) :]
    if not re.fullmatch(r"[A-Za-z]+", name):
        raise ParseError(f"after '{TAG}' stands something else than one single name", response)
    return name


class Traveller(Player):
    """Names the capitals; its scripted replies are the right ones."""

    def __init__(self, model: Model, capitals: list[str]) -> None:
        super().__init__(model)
        self.ahead = list(capitals)

    def _custom_response(self, context: dict[str, Any]) -> str:
        return f"{TAG}{self.ahead.pop(0)}"


class RoundtripMaster(DialogueGameMaster):
    """Leads the player from stop to stop."""

    def _on_setup(self, **instance: Any) -> None:
        self.stops: list[dict[str, Any]] = instance["stops"]
        self.right = 0
        self.wrong = 0
        self.wrong_here = 0
        self.traveller = Traveller(self.player_models[0], [stop["capital"] for stop in self.stops])
        self.add_player(self.traveller, initial_context=self.experiment["prompt"].replace("$TASK$", self._task()))

    def _task(self) -> str:
        country: str = self.stops[self.right]["country"]
        return str(self.experiment["task"]).replace("$COUNTRY$", country)

    def _parse_response(self, player: Player, response: str) -> str:
        return read_name(response)

    def _advance_game(self, player: Player, parsed_response: str) -> None:
        if parsed_response.lower() == self.stops[self.right]["capital"].lower():
            self._travel_on(parsed_response)
        else:
            self._stay(parsed_response)

    def _travel_on(self, name: str) -> None:
        self.log_to_self("right name", name)
        self.right += 1
        self.wrong_here = 0
        if self.right == len(self.stops):
            self.state.succeed()
        else:
            self.set_context_for(self.traveller, f"{self.experiment['on_right']}\n\n{self._task()}")

    def _stay(self, name: str) -> None:
        self.log_to_self("wrong name", name)
        self.wrong += 1
        self.wrong_here += 1
        if self.wrong_here == TRIES:
            self.log_to_self("out of tries", f"{TRIES} wrong names at one stop")
            self.state.failed()
        else:
            again = self.experiment["on_wrong"].replace("$NAMES$", " or ".join(self.stops[self.right]["names"]))
            self.set_context_for(self.traveller, f"{again}\n\n{self._task()}")

    def _on_parse_error(self, error: ParseError) -> None:
        self.log_to_self("invalid format", error.reason)
        self.state.abort()

    def _on_after_game(self) -> None:
        self.log_key(METRIC_ABORTED, int(self.state.outcome is Outcome.ABORTED))
        self.log_key(METRIC_LOSE, int(self.state.outcome is Outcome.FAILURE))
        self.log_key(METRIC_SUCCESS, int(self.state.outcome is Outcome.SUCCESS))
        self.log_key(KEY_RIGHT, self.right)
        self.log_key(KEY_WRONG, self.wrong)


class RoundtripScorer(GameScorer):
    """On success the share of names that were right, in percent; 0 when lost."""

    def compute_round_score(self, round_idx: int, round_events: list[dict[str, Any]]) -> None:
        pass

    def compute_episode_scores(self, interactions: dict[str, Any]) -> None:
        right, wrong = interactions[KEY_RIGHT], interactions[KEY_WRONG]
        self.log_episode_score(KEY_RIGHT, right)
        self.log_episode_score(KEY_WRONG, wrong)
        if interactions[METRIC_ABORTED]:
            self.log_episode_score(BENCH_SCORE, math.nan)
        elif interactions[METRIC_SUCCESS]:
            self.log_episode_score(BENCH_SCORE, round(100 * right / (right + wrong), 2))
        else:
            self.log_episode_score(BENCH_SCORE, 0)


class RoundtripBenchmark(GameBenchmark):
    """The game as clemcore finds it."""

    def create_game_master(self, experiment: dict[str, Any], player_models: list[Model]) -> GameMaster:
        return RoundtripMaster(self.game_spec, experiment, player_models)

    def create_game_scorer(self, experiment: dict[str, Any], game_instance: dict[str, Any]) -> GameScorer:
        return RoundtripScorer(self.game_name, experiment, game_instance)
