"""Harvest: from episodes to the moves worth teaching or correcting, and what accepted moves of each role look like.

Knows no file and no strategy. Every choice ranks by a hash of (seed, move), so the order of the input never matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pairgen.records import Drop, Episode, EpisodeRow, Move, content_id, episode_row, move_id
from pairgen.strategy import Rival
from pipelines.recorded import PSEUDO

PEERS_PER_ROLE = 500

Peers = Mapping[tuple[str, str], tuple[str, ...]]
Rivals = Mapping[str, tuple[Rival, ...]]
IsEvaluation = Callable[[Episode], bool]


class Caps(NamedTuple):
    """The most moves to keep of one player in one episode, and of one game; 0 is no cap."""

    per_player: int = 2
    per_game: int = 0


class WonMove(NamedTuple):
    """A move to make a pair of, and its episode: one that it helped to win, or (to be corrected) that it aborted."""

    move_id: str
    episode: EpisodeRow
    move: Move


Level = Callable[[WonMove], Hashable]
Fault = Callable[[Episode, Move], tuple[str, str]]


class Harvest(NamedTuple):
    """`entered` moves are `kept` plus `drops`; `unknown_finish` of the kept ones do not say why the model ended."""

    kept: list[WonMove]
    drops: list[Drop]
    entered: int
    unknown_finish: int


def harvest(
    episodes: Iterable[Episode], caps: Caps, seed: int, is_evaluation: IsEvaluation = lambda _: False
) -> Harvest:
    """Keep the moves of won episodes that the game master accepted and the model ended itself, within the caps.

    Moves of evaluation instances come last in each cap: they are taken out later and shall not use up the room.
    """
    return _harvest(episodes, caps, seed, is_evaluation, _fault, "harvest")


def harvest_aborted(
    episodes: Iterable[Episode], caps: Caps, seed: int, is_evaluation: IsEvaluation = lambda _: False
) -> Harvest:
    """Keep the last move of each aborted episode where the game master gave its reason, as `harvest` does otherwise.

    What enters are the moves of aborted episodes alone.
    """
    aborted = (episode for episode in episodes if episode.outcome == "aborted")
    return _harvest(aborted, caps, seed, is_evaluation, _fault_of_aborted, "harvest_aborted")


def _harvest(
    episodes: Iterable[Episode], caps: Caps, seed: int, is_evaluation: IsEvaluation, fault: Fault, stage: str
) -> Harvest:
    drops: list[Drop] = []
    kept: list[WonMove] = []
    late: set[str] = set()
    seen: set[str] = set()
    entered = 0
    for episode in episodes:
        row = episode_row(episode)
        repeated = row.episode_id in seen
        seen.add(row.episode_id)
        evaluation = is_evaluation(episode)
        for move in episode.moves:
            entered += 1
            won = WonMove(move_id(row.episode_id, move.index), row, move)
            reason, detail = ("repeated_episode", "") if repeated else fault(episode, move)
            if reason:
                drops.append(_drop(won, stage, reason, detail))
                continue
            kept.append(won)
            if evaluation:
                late.add(won.move_id)
    for reason, cap, group, levels in (
        ("cap_per_player", caps.per_player, _seat, ()),
        ("cap_per_game", caps.per_game, _game, (_experiment, _instance, _role)),
    ):
        if cap:
            kept, over = _cap(kept, cap, group, levels, seed, late)
            drops += [_drop(won, stage, reason) for won in over]
    kept.sort(key=lambda w: (w.episode.game, w.episode.experiment, w.episode.task_id, w.episode.sample, w.move_id))
    drops.sort(key=lambda d: (d.game, d.experiment, d.task_id, d.sample, d.move_index, d.item_id, d.reason))
    return Harvest(kept, drops, entered, sum(w.move.finish_reason == "unknown" for w in kept))


def find_peers(episodes: Iterable[Episode], seed: int, is_evaluation: IsEvaluation = lambda _: False) -> Peers:
    """The learner's distinct accepted replies of each (game, role), sorted, at most 500, not from episodes in error.

    Replies to evaluation instances are shown only where a role has no others: its moves are then all evaluation moves,
    which decontamination takes out, so that no pair that is kept can borrow from them.
    """
    clean: dict[tuple[str, str], set[str]] = defaultdict(set)
    evaluation: dict[tuple[str, str], set[str]] = defaultdict(set)
    for episode in episodes:
        if episode.outcome == "error":
            continue
        pool = evaluation if is_evaluation(episode) else clean
        for move in episode.moves:
            if _by_learner(episode, move) and not move.violation and move.reply.strip() and _is_text(move.reply):
                pool[episode.game, move.role].add(move.reply)
    return {key: _bounded(clean.get(key) or evaluation[key], seed) for key in sorted({*clean, *evaluation})}


def find_rivals(episodes: Iterable[Episode]) -> Rivals:
    """What the learner said in lost and aborted episodes, by `place_of` the move: what a won move can be set against.

    Of an aborted episode only the last move counts: the game master accepted those before it. What also won from the
    same place is no rival, whoever said it, so that no reply is preferred there and rejected as well.
    """
    rivals: dict[str, set[Rival]] = defaultdict(set)
    won: dict[str, set[str]] = defaultdict(set)
    for episode in episodes:
        if episode.outcome not in ("success", "lose", "aborted"):
            continue
        for move in episode.moves[-1:] if episode.outcome == "aborted" else episode.moves:
            if not (_by_learner(episode, move) and move.reply.strip() and _is_text(move.reply)):
                continue
            if episode.outcome != "success":
                rivals[place_of(episode.game, move)].add(Rival(move.reply, episode.outcome, move.model))
            elif not move.violation:
                won[place_of(episode.game, move)].add(" ".join(move.reply.split()))
    return {
        place: tuple(sorted(r for r in found if " ".join(r.reply.split()) not in won.get(place, ())))
        for place, found in rivals.items()
    }


def place_of(game: str, move: Move) -> str:
    """Names the state that a model is asked in: equal for equal game, role and prompt."""
    return content_id("place", game, move.role, move.prompt)


def _by_learner(episode: Episode, move: Move) -> bool:
    """Whether the model that is to be trained said this itself."""
    return move.model != "programmatic" and move.finish_reason != PSEUDO and move.player not in episode.partners


def _bounded(replies: set[str], seed: int) -> tuple[str, ...]:
    if len(replies) > PEERS_PER_ROLE:
        replies = set(sorted(replies, key=lambda r: content_id(seed, r))[:PEERS_PER_ROLE])
    return tuple(sorted(replies))


def _fault(episode: Episode, move: Move) -> tuple[str, str]:
    """Why a move is not worth teaching, as (reason, detail); empty when it is."""
    if reason := _unsaid(episode, move):
        return reason, ""
    if episode.outcome != "success":
        return f"outcome_{episode.outcome}", ""
    if move.violation:
        return "violation", move.violation.encode("utf-8", "replace").decode()
    return _unfit(move)


def _fault_of_aborted(episode: Episode, move: Move) -> tuple[str, str]:
    """Why a move of an aborted episode is not the one to correct, as (reason, detail); empty when it is."""
    if reason := _unsaid(episode, move):
        return reason, ""
    if move is not episode.moves[-1]:
        return "before_abort", ""
    if not (move.violation.strip() and _is_text(move.violation)):
        return "no_violation", ""
    return _unfit(move)


def _unsaid(episode: Episode, move: Move) -> str:
    if move.model == "programmatic":
        return "programmatic"
    if move.player in episode.partners:
        return "partner"
    return "pseudo" if move.finish_reason == PSEUDO else ""


def _unfit(move: Move) -> tuple[str, str]:
    if move.finish_reason not in ("stop", "unknown"):
        return "unfinished", move.finish_reason
    if not (move.reply.strip() and move.prompt):
        return "empty", "reply" if move.prompt else "prompt"
    if not (_is_text(move.reply) and all(_is_text(m.content) for m in move.prompt)):
        return "not_text", "lone surrogates"
    return "", ""


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cap(
    moves: list[WonMove], cap: int, group: Level, levels: Sequence[Level], seed: int, late: set[str]
) -> tuple[list[WonMove], list[WonMove]]:
    """At most `cap` moves of each group, taken in turn from its strata; those in `late` only when room is left."""
    kept: list[WonMove] = []
    over: list[WonMove] = []
    for members in _grouped(moves, group):
        ordered = sorted(_spread(members, levels, seed), key=lambda w: w.move_id in late)
        kept += ordered[:cap]
        over += ordered[cap:]
    return kept, over


def _spread(moves: list[WonMove], levels: Sequence[Level], seed: int) -> list[WonMove]:
    """An order whose every beginning takes from the strata of each level as evenly as it can; seeded within them."""
    if not levels:
        return sorted(moves, key=lambda w: _rank(seed, w))
    strata = [_spread(members, levels[1:], seed) for members in _grouped(moves, levels[0])]
    turns = [(turn, won) for stratum in strata for turn, won in enumerate(stratum)]
    return [won for _, won in sorted(turns, key=lambda item: (item[0], _rank(seed, item[1])))]


def _grouped(moves: Iterable[WonMove], level: Level) -> list[list[WonMove]]:
    groups: dict[object, list[WonMove]] = defaultdict(list)
    for won in moves:
        groups[level(won)].append(won)
    return list(groups.values())


def _rank(seed: int, won: WonMove) -> str:
    return content_id(seed, won.move_id)


def _game(won: WonMove) -> Hashable:
    return won.episode.game


def _experiment(won: WonMove) -> Hashable:
    return won.episode.experiment


def _instance(won: WonMove) -> Hashable:
    return won.episode.game, won.episode.experiment, won.episode.task_id


def _seat(won: WonMove) -> Hashable:
    return won.episode.episode_id, won.move.player


def _role(won: WonMove) -> Hashable:
    return won.move.role


def _drop(won: WonMove, stage: str, reason: str, detail: str = "") -> Drop:
    e = won.episode
    return Drop(
        stage, reason, detail, won.move_id, "", None, e.game, e.experiment, e.task_id, e.sample, won.move.index, ""
    )  # fmt: skip
