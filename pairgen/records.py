"""Every record that pairgen writes, declared once: the journal, the tables and the Hub features derive from here.

Knows nothing of files, games or engines. A change of a field is a change of `SCHEMA_VERSION`; a field with a default
can be missing from what an older version in `READABLE` wrote.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import datasets
    import polars as pl

SCHEMA_VERSION = 2
READABLE = frozenset({1, 2})
"""Version 1 did not know of partners: all of its model players are the learner's."""

Outcome = Literal["success", "lose", "aborted", "error", "unscored"]
OUTCOMES: tuple[Outcome, ...] = typing.get_args(Outcome)


class InstanceKey(NamedTuple):
    """Names an instance as clembench and playpen do; `task_id` is clembench's `game_id`."""

    game: str
    experiment: str
    task_id: int


class EpisodeKey(NamedTuple):
    """Names an episode within a run: the `sample`-th play of an instance."""

    game: str
    experiment: str
    task_id: int
    sample: int

    @property
    def instance(self) -> InstanceKey:
        return InstanceKey(self.game, self.experiment, self.task_id)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is system, user or assistant."""

    role: str
    content: str


Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits at the table. `model` is "programmatic" for players that the game scripts itself.

    `learner` is False where a partner speaks for the player: what it says never becomes data.
    """

    name: str
    role: str
    model: str
    learner: bool = True

    @property
    def programmatic(self) -> bool:
        return self.model == "programmatic"


@dataclass(frozen=True, slots=True)
class Move:
    """One reply of a model player, with the prompt it answered.

    `prompt` is exactly the message list that was sent, `reply` what the game was shown, `raw_reply` what the model
    said before thinking text was taken out. Token counts are -1 where they were not recorded (imports); `token_ids`
    is then empty. `violation` is the game master's reason for not accepting the move, or empty.
    """

    index: int
    player: str
    role: str
    model: str
    prompt: Messages
    reply: str
    raw_reply: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    token_ids: tuple[int, ...]
    violation: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an episode could not be played to its end. `kind` is a stable word, `move` the number of moves made."""

    kind: str
    message: str
    move: int


@dataclass(frozen=True, slots=True)
class Episode:
    """One play of one instance. `main_score` is the game's own (0 to 100; None where there is none, as when aborted).

    `instance_hash` is the content of the instance without its numbers ("" where the instance is not known), and
    `source` is "rollout", or the folder below the imported one.
    """

    game: str
    experiment: str
    task_id: int
    sample: int
    seed: int
    outcome: Outcome
    main_score: float | None
    players: tuple[Player, ...]
    moves: tuple[Move, ...]
    fault: Fault | None
    instance_hash: str
    clemcore_version: str
    source: str

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(self.game, self.experiment, self.task_id, self.sample)

    @property
    def partners(self) -> frozenset[str]:
        """The names of the players that a partner speaks for."""
        return frozenset(p.name for p in self.players if not p.learner)

    @property
    def episode_id(self) -> str:
        """Content hash of who played what and what was said; equal for equal play."""
        said = [(m.index, m.player, m.model, m.reply) for m in self.moves]
        return content_id("episode", self.key, self.source, self.outcome, said)


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode without its moves: one row of `episodes.parquet`."""

    episode_id: str
    game: str
    experiment: str
    task_id: int
    sample: int
    seed: int
    outcome: str
    main_score: float | None
    players: tuple[Player, ...]
    moves: int
    fault: Fault | None
    instance_hash: str
    clemcore_version: str
    source: str


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A move with the name of its episode: one row of `moves.parquet`."""

    move_id: str
    episode_id: str
    game: str
    experiment: str
    task_id: int
    sample: int
    outcome: str
    index: int
    player: str
    role: str
    model: str
    prompt: Messages
    reply: str
    raw_reply: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    violation: str
    learner: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """A preference pair and where both sides came from: one row of the `full` configuration.

    `prompt`, `chosen` and `rejected` are message lists; a completion holds the reply only. Verdicts are `accepted`,
    `violation`, or `unverifiable: <reason>`; `*_reason` is the game master's own text. `detail` says how the strategy
    made the rejected side. `split` is train or test ("" before the split is made).
    """

    pair_id: str
    prompt: Messages
    chosen: Messages
    rejected: Messages
    strategy: str
    detail: str
    game: str
    experiment: str
    task_id: int
    sample: int
    episode_id: str
    move_id: str
    move_index: int
    player: str
    role: str
    model: str
    outcome: str
    main_score: float | None
    chosen_verdict: str
    chosen_reason: str
    rejected_verdict: str
    rejected_reason: str
    instance_hash: str
    split: str

    @property
    def instance(self) -> InstanceKey:
        return InstanceKey(self.game, self.experiment, self.task_id)


@dataclass(frozen=True, slots=True)
class TrainRow:
    """What a trainer reads, and nothing else: one row of the `default` configuration."""

    prompt: Messages
    chosen: Messages
    rejected: Messages


@dataclass(frozen=True, slots=True)
class Drop:
    """Something that did not become data, and why: one row of `dropped.parquet`.

    `stage` and `reason` are stable words for counting; `detail` is for a person; `kept_id` names the row it collides
    with, where there is one; `score` is the similarity of near duplicates, in 0 to 1.
    """

    stage: str
    reason: str
    detail: str
    item_id: str
    kept_id: str
    score: float | None
    game: str
    experiment: str
    task_id: int
    sample: int
    move_index: int
    strategy: str


def content_id(*parts: Any) -> str:
    """A 16-digit hexadecimal name of JSON-serialisable content: equal content, equal name, on every machine."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    raise TypeError(f"{type(value).__name__} has no content hash")


def instance_hash(game: str, instance: dict[str, Any]) -> str:
    """Names what an instance asks, without its number: the same task under another `game_id` has the same hash."""
    return content_id("instance", game, {k: v for k, v in instance.items() if k != "game_id"})


def move_id(episode_id: str, index: int) -> str:
    return content_id("move", episode_id, index)


def to_dict(record: Any) -> Any:
    """A record as plain dictionaries, lists and scalars, fields in their declared order."""
    if dataclasses.is_dataclass(record):
        cls: Any = type(record)
        return {name: to_dict(getattr(record, name)) for name in _names(cls)}
    if isinstance(record, (tuple, list)):
        return [to_dict(item) for item in record]
    return record


@functools.cache
def _names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def from_dict(cls: type[Any], data: Any) -> Any:
    """The record of type `cls` from `to_dict`'s form or from a table row.

    Raises KeyError for a missing field without a default and TypeError for a value of another kind; unknown fields are
    ignored, so that a newer file of the same schema version can be read.
    """
    hint: Any = cls
    return _builder(hint)(data)


@functools.cache
def _builder(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of the type `hint`; kept, since journals ask for the same few types a million times."""
    if dataclasses.is_dataclass(hint):
        return _record_builder(hint)
    if typing.get_origin(hint) is tuple:
        return _list_builder(typing.get_args(hint)[0])
    optional, inner = _optional(hint)
    if optional:
        build = _builder(inner)
        return lambda value: None if value is None else build(value)
    return _scalar_builder(_scalar(hint))


def _record_builder(cls: Any) -> Callable[[Any], Any]:
    defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
    fields = tuple((name, _builder(hint), name in defaults) for name, hint in fields_of(cls))

    def build(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{cls.__name__} needs an object, not {type(value).__name__}")
        return cls(
            *[
                defaults[name] if optional and name not in value else field(value[name])
                for name, field, optional in fields
            ]
        )

    return build


def _list_builder(hint: Any) -> Callable[[Any], Any]:
    item = _builder(hint)

    def build(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"a list is needed, not {type(value).__name__}")
        return tuple([item(v) for v in value])

    return build


def _scalar_builder(kind: type) -> Callable[[Any], Any]:
    def build(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise TypeError(f"{kind.__name__} is needed, not {type(value).__name__}")

    return build


@functools.cache
def _hints(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(cls)
    return tuple((f.name, hints[f.name]) for f in dataclasses.fields(cls))


def fields_of(cls: Any) -> tuple[tuple[str, Any], ...]:
    """The (name, type) of each field of a record class, in order."""
    return _hints(cls)


def _optional(hint: Any) -> tuple[bool, Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [a for a in typing.get_args(hint) if a is not type(None)]
        return True, inner[0]
    return False, hint


def _scalar(hint: Any) -> type:
    if typing.get_origin(hint) is Literal:
        return str
    if hint in (str, int, float, bool):
        return typing.cast(type, hint)
    raise TypeError(f"no column type for {hint}")


def polars_schema(cls: type[Any]) -> dict[str, pl.DataType]:
    """The polars schema of a record class: str, int, float and bool, lists and structs of them."""
    import polars as pl

    def dtype(hint: Any) -> Any:
        hint = _optional(hint)[1]
        if dataclasses.is_dataclass(hint):
            return pl.Struct({name: dtype(h) for name, h in fields_of(hint)})
        if typing.get_origin(hint) is tuple:
            return pl.List(dtype(typing.get_args(hint)[0]))
        return {str: pl.String(), int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean()}[_scalar(hint)]

    return {name: dtype(hint) for name, hint in fields_of(cls)}


def hub_features(cls: type[Any]) -> datasets.Features:
    """The Hub features of a record class, one column a field."""
    import datasets

    def feature(hint: Any) -> Any:
        hint = _optional(hint)[1]
        if dataclasses.is_dataclass(hint):
            return {name: feature(h) for name, h in fields_of(hint)}
        if typing.get_origin(hint) is tuple:
            return [feature(typing.get_args(hint)[0])]
        return datasets.Value({str: "string", int: "int64", float: "float64", bool: "bool"}[_scalar(hint)])

    return datasets.Features({name: feature(hint) for name, hint in fields_of(cls)})


def move_rows(episode: Episode) -> Iterator[MoveRow]:
    """One table row a move of the episode."""
    eid, partners = episode.episode_id, episode.partners
    for m in episode.moves:
        yield MoveRow(
            move_id(eid, m.index), eid, episode.game, episode.experiment, episode.task_id, episode.sample,
            episode.outcome, m.index, m.player, m.role, m.model, m.prompt, m.reply, m.raw_reply, m.finish_reason,
            m.prompt_tokens, m.completion_tokens, m.cached_tokens, m.violation, m.player not in partners,
        )  # fmt: skip


def episode_row(episode: Episode) -> EpisodeRow:
    """The episode's table row."""
    e = episode
    return EpisodeRow(
        e.episode_id, e.game, e.experiment, e.task_id, e.sample, e.seed, e.outcome, e.main_score, e.players,
        len(e.moves), e.fault, e.instance_hash, e.clemcore_version, e.source,
    )  # fmt: skip
