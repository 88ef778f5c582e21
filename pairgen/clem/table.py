"""One open episode at a game master: says which model player must speak, takes the reply, and ends with a score.

Runs in a worker. Knows clemcore's environment and its result layout; knows no model and no other episode.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from clemcore.backends import CustomResponseModel, Model, ModelSpec
from clemcore.backends.utils import ensure_alternating_roles
from clemcore.clemgame import metrics
from clemcore.clemgame.callbacks.base import GameBenchmarkCallback, GameBenchmarkCallbackList
from clemcore.clemgame.callbacks.files import ResultsFolder
from clemcore.clemgame.envs.pettingzoo.master import GameMasterEnv
from clemcore.clemgame.recorder import EventCallRecorder, GameInteractionsRecorder
from clemcore.clemgame.resources import store_json

from pairgen.clem.compat import SetupKeys
from pairgen.clem.events import violation_in
from pairgen.records import instance_hash


class Seat(Model):
    """Holds the place of a model that speaks elsewhere; a game that calls it directly is told so."""

    def __init__(self, label: str, sampling: dict[str, Any], *, learner: bool = True):
        super().__init__(ModelSpec(model_name=label, backend="pairgen"))
        self.set_gen_args(**sampling)
        self.learner = learner

    def generate_response(self, messages: list[dict[str, Any]]) -> Any:
        raise RuntimeError("this game asks its model outside of its turns, which pairgen does not support")


class GameFault(Exception):
    """The game could not go on; `stage` is setup, play or scoring, the text is the game's own exception."""

    def __init__(self, stage: str, error: Exception):
        super().__init__(f"{type(error).__name__}: {error}")
        self.stage = stage


class _Early:
    """The game's benchmark, whose game masters have a logger from the first moment on."""

    def __init__(self, benchmark: Any, record: _Record):
        self._benchmark, self._record, self.game_spec = benchmark, record, benchmark.game_spec

    def create_game_master(self, experiment: dict[str, Any], player_models: list[Any]) -> Any:
        master = self._benchmark.create_game_master(experiment, player_models)
        master.register(self._record.setup)
        return master


class _Record(GameBenchmarkCallback):
    """Registers clemcore's own recorders the moment the players are known."""

    def __init__(self, seats: list[Seat], learner: Seat):
        self.seats, self.learner = seats, learner
        self.calls: dict[str, Any] = {}
        self.partners: set[str] = set()
        self.setup = SetupKeys()

    @property
    def infos(self) -> Any:
        return Model.to_infos(self.seats)

    def on_game_start(self, game_master: Any, game_instance: dict[str, Any]) -> None:
        self._seat(game_master.get_players())
        game, experiment = game_master.game_spec.game_name, game_master.experiment["name"]
        number = game_instance["game_id"]
        self.interactions = GameInteractionsRecorder(
            game, experiment, number, Model.to_identifier(self.seats), self.infos
        )
        for key, value in self.setup.keys.items():
            self.interactions.log_key(key, value)
        game_master.register(self.interactions)
        for player in game_master.get_players():
            self.interactions.log_player(player.name, player.game_role, player.model.name)
            if isinstance(player.model, Seat) and not player.model.learner:
                self.partners.add(player.name)
            calls = EventCallRecorder(
                game, experiment_name=experiment, game_id=number, player_name=player.name,
                game_role=player.game_role, model_name=player.model.name,
            )  # fmt: skip
            game_master.register(calls)
            player.register(calls)
            self.calls[player.name] = calls

    def _seat(self, players: list[Any]) -> None:
        """A game that leaves one model to speak, since it scripts the others itself, is the learner's."""
        taken = {id(player.model): player.model for player in players if isinstance(player.model, Seat)}
        if len(taken) == 1:
            (seat,) = taken.values()
            seat.model_spec, seat.learner = self.learner.model_spec, True
            self.seats = [self.learner]


class Table:
    """An episode in play. `open` and `reply` return what comes next as a message for the driver.

    Where a `partner` is named, it has every seat but the `learner`-th (from 0).
    """

    def __init__(
        self,
        benchmark: Any,
        row: dict[str, Any],
        label: str,
        sampling: dict[str, Any],
        seed: int,
        *,
        partner: str = "",
        learner: int = 0,
    ):
        self._benchmark, self.row = benchmark, row
        players, own = benchmark.game_spec.players, Seat(label, sampling)
        other = Seat(partner, sampling, learner=False) if partner and players > 1 else own
        self._seats = [own if player == learner else other for player in range(players)]
        self._record = _Record([own] if own is other else self._seats, own)
        self._env = GameMasterEnv(_Early(benchmark, self._record), callbacks=GameBenchmarkCallbackList([self._record]))
        self._chance = _Chance(seed)
        self._events_seen: list[int] = []
        self._violated = 0
        self._prompt: list[dict[str, str]] = []
        self._opening: dict[str, Any] | None = None

    def open(self) -> dict[str, Any]:
        """What is asked first; the same again when it is opened already."""
        if self._opening is None:
            self._opening = self._open()
        return self._opening

    def _open(self) -> dict[str, Any]:
        with self._chance.held(), _stage("setup"):
            self._env.reset(options={"player_models": self._seats, **_experiment_and_instance(self.row)})
            self._next_violation()
        with self._chance.held(), _stage("play"):
            return self._go_on("")

    def reply(self, text: str, call: dict[str, Any]) -> dict[str, Any]:
        """The model's reply for the player that was asked; `call` is kept in clemcore's requests file."""
        with self._chance.held(), _stage("play"):
            player = self._player()
            player.perceive_response(text, metadata={"prompt": self._prompt, "response_object": call})
            self._env.step(text)
            return self._go_on(self._next_violation())

    def copy(self) -> Table:
        """This episode as it stands, to be played on otherwise; models, instance and the game's code are shared."""
        shared = (self._benchmark, self.row, *self._seats)
        return deepcopy(self, {id(thing): thing for thing in shared})

    def again(self, seed: int) -> Table:
        """Another episode of this instance, from here on; only for a table that is open, unplayed and `undrawn`."""
        other = self.copy()
        other._chance = _Chance(seed)
        return other

    @property
    def undrawn(self) -> bool:
        """Whether the game has drawn no random number so far."""
        return self._chance.untouched

    def _go_on(self, violation: str) -> dict[str, Any]:
        """Let programmatic players speak until a model player must, or the game is over."""
        while not self._over():
            player = self._player()
            context = self._env.observe(self._env.agent_selection)
            if isinstance(player.model, CustomResponseModel):
                self._env.step(player(context))
                violation = violation or self._next_violation()
                continue
            self._prompt = _sendable(player.perceive_context(context))
            return {"op": "ask", "player": player.name, "role": player.game_role, "model": player.model.name,
                    "learner": player.model.learner, "messages": self._prompt, "violation": violation}  # fmt: skip
        return {"op": "end", "violation": violation}

    def _over(self) -> bool:
        return all(self._env.terminations.values())

    def _player(self) -> Any:
        return self._env.player_by_agent_id[self._env.agent_selection]

    def _next_violation(self) -> str:
        """Why the game master did not accept what it was just told, or ""."""
        turns = self._record.interactions.interactions["turns"]
        seen = self._events_seen + [0] * (len(turns) - len(self._events_seen))
        new = [event for turn, start in zip(turns, seen, strict=True) for event in turn[start:]]
        self._events_seen = [len(turn) for turn in turns]
        counted = sum(self._record.interactions.violated_requests_counts)
        violated, self._violated = counted > self._violated, counted
        return violation_in(new) or ("the game master counted a violated request" if violated else "")

    @property
    def duo(self) -> bool:
        """Whether learner and partner both sit here, so that the results are named after both."""
        return len(self._record.seats) > 1

    def known(self) -> dict[str, Any]:
        """Who sits at the table (nobody where the game failed before it had players), and what the instance asks."""
        recorder, partners = getattr(self._record, "interactions", None), self._record.partners
        found = recorder.interactions["players"] if recorder else {}
        players = [
            {"name": name, "role": p["game_role"], "model": p["model_name"], "learner": name not in partners}
            for name, p in found.items()
            if name != "GM"
        ]
        game = self._benchmark.game_spec.game_name
        return {"players": players, "instance_hash": instance_hash(game, self.row["game_instance"])}

    def score(self, results: Path | None) -> tuple[str, float | None]:
        """Outcome and main score by the game's own scorer; writes clemcore's layout below `results`."""
        parts = _experiment_and_instance(self.row)
        interactions = json.loads(json.dumps(self._record.interactions.interactions))
        folder = self._write(Path(results), interactions) if results else None
        with self._chance.held(), _stage("scoring"):
            scorer = self._benchmark.create_game_scorer(parts["experiment"], parts["game_instance"])
            scorer.compute_scores(interactions)
            scores = json.loads(json.dumps(scorer.scores))["episode scores"]
            if folder:
                scorer.store_scores(folder)
            return _outcome(scores)

    def _write(self, results: Path, interactions: dict[str, Any]) -> Path:
        master, instance = self._env.game_master, self.row["game_instance"]
        layout = ResultsFolder(results, ".")
        folder = Path(layout.to_instance_dir_path(master, instance))
        infos, name = self._record.infos, master.game_spec.game_name
        experiment = {**self.row["experiment"], "game_name": name, "player_models": infos}
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier attempt that was killed before it counted
        _store_once(experiment, folder.parent / "experiment.json")
        store_json(instance, "instance.json", folder)
        for name, calls in self._record.calls.items():
            if len(calls):
                store_json(calls.requests, f"{name.lower().replace(' ', '_')}.requests.json", folder)
        store_json(interactions, "interactions.json", folder)
        return folder


def _store_once(data: Any, path: Path) -> None:
    """Many episodes share the file, and a worker may be killed while it writes: it appears whole or not at all."""
    if not path.exists():
        store_json(data, f".{path.name}.{os.getpid()}", path.parent)
        path.with_name(f".{path.name}.{os.getpid()}").replace(path)


def _experiment_and_instance(row: dict[str, Any]) -> dict[str, Any]:
    """Fresh copies: game masters are known to write into what they are given."""
    copy: dict[str, Any] = json.loads(json.dumps({k: row[k] for k in ("experiment", "game_instance")}))
    return copy


def _sendable(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The message list as clemcore's backends send it: same roles in a row merged, nothing but role and content."""
    if any(m.get("image") for m in messages):
        raise ValueError("this game shows images, which pairgen does not send")
    return [{"role": m["role"], "content": m["content"]} for m in ensure_alternating_roles(messages)]


def _outcome(scores: dict[str, Any]) -> tuple[str, float | None]:
    main = scores.get(metrics.BENCH_SCORE)
    score = float(main) if isinstance(main, (int, float)) and math.isfinite(main) else None
    if scores[metrics.METRIC_ABORTED]:
        return "aborted", score
    return ("success" if scores[metrics.METRIC_SUCCESS] else "lose"), score


@contextmanager
def _stage(name: str) -> Iterator[None]:
    try:
        yield
    except GameFault:
        raise
    except Exception as error:
        raise GameFault(name, error) from error


class _Chance:
    """An episode's own random state: games share one process and draw from the global generators."""

    def __init__(self, seed: int):
        self._states: list[Any] | None = None
        self._seed = seed

    @property
    def untouched(self) -> bool:
        """Whether the generators stand as the seed put them."""
        fresh = _Chance(self._seed)
        with fresh.held():
            pass
        return pickle.dumps(fresh._states) == pickle.dumps(self._states)

    @contextmanager
    def held(self) -> Iterator[None]:
        generators = _generators()
        if self._states is None:
            for seed, _, _ in generators:
                seed(self._seed)
        else:
            for (_, _, put), state in zip(generators, self._states, strict=False):
                put(state)
        try:
            yield
        finally:
            self._states = [get() for _, get, _ in generators]


def _generators() -> list[tuple[Callable[[int], Any], Callable[[], Any], Callable[[Any], Any]]]:
    found: list[Any] = [(random.seed, random.getstate, random.setstate)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found.append((lambda s: numpy.random.seed(s % 2**32), numpy.random.get_state, numpy.random.set_state))
    return found
