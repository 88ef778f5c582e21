"""Spoil: each strategy at work on the moves that it takes, and what it must have asked for that. Pure."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pairgen.records import Drop, InstanceKey, Message, Pair, content_id
from pairgen.strategy import Choice, Corruption, Decline, Draft, Material, Strategy
from pipelines.errands import Errand, errand, with_drafts
from pipelines.funnel import drop_pair
from pipelines.harvest import Peers, Rivals, WonMove, place_of
from pipelines.spread import spread

NOT_VERIFIED = "unverifiable: not verified"

Watch = Callable[[Sequence[WonMove], str], Iterable[WonMove]]


class Made(NamedTuple):
    """`entered` tries are `pairs` plus `drops`."""

    pairs: list[Pair]
    drops: list[Drop]
    entered: int


def asks_of(
    moves: Sequence[WonMove],
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    peers: Peers,
    seed: int,
    secret: Mapping[str, str] = MappingProxyType({}),
) -> list[Errand]:
    """What `corrupt` needs asked of the same moves, each errand once."""
    heaviest = max(c.weight for c in choices)
    found: dict[str, Errand] = {}
    for choice in sorted(choices, key=lambda c: c.name):
        strategy = strategies[choice.name]
        if strategy.asks is None:
            continue
        taken = _taken(moves, strategy)
        chosen = _share(taken, choice.name, choice.weight / heaviest, seed)
        for won in taken:
            if won.move_id in chosen and won.move_id not in secret:
                material = _material(won, peers, {})
                asks = strategy.asks(material, _chance(seed, won, strategy), choice.options)
                for ask in () if isinstance(asks, Decline) else asks:
                    wanted = errand(strategy.asked, won.episode.episode_id, ask)
                    found.setdefault(wanted.name, wanted)
    return list(found.values())


def corrupt(
    moves: Sequence[WonMove],
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    peers: Peers,
    seed: int,
    watch: Watch = lambda moves, _: moves,
    rivals: Rivals = MappingProxyType({}),
    drafts: Mapping[str, Draft] = MappingProxyType({}),
    secret: Mapping[str, str] = MappingProxyType({}),
) -> Made:
    """What each strategy makes of each move, unless it declines; a strategy of less weight gets fewer moves.

    A try is one pair that was looked for: one for each move and strategy, or, where the strategy gave several
    corruptions, as many as it gave. What a prompt has too many of (`most_per_prompt`) is dropped. Each strategy has the
    moves that it takes: won or aborting ones. `secret` are the moves about which nobody may be asked, and why. The
    order of moves and of choices does not matter.
    """
    heaviest = max(c.weight for c in choices)
    pairs: list[Pair] = []
    drops: list[Drop] = []
    tries = 0
    for choice in sorted(choices, key=lambda c: c.name):
        strategy, made = strategies[choice.name], []
        taken = _taken(moves, strategy)
        chosen = _share(taken, choice.name, choice.weight / heaviest, seed)
        for won in watch(taken, choice.name):
            if won.move_id not in chosen:
                drops.append(_drop(won, choice.name, "share"))
                tries += 1
                continue
            if strategy.asks is not None and won.move_id in secret:
                drops.append(_drop(won, choice.name, secret[won.move_id]))
                tries += 1
                continue
            results = _spoil(won, _material(won, peers, rivals), strategy, choice.options, seed, drafts)
            tries += len(results)
            made += [result for result in results if isinstance(result, Pair)]
            drops += [result for result in results if isinstance(result, Drop)]
        kept, over = spread(made, int(choice.options.get("per_prompt", strategy.most_per_prompt)), seed)
        pairs += kept
        drops += [drop_pair(pair, "corrupt", "cap_per_prompt") for pair in over]
    return Made(pairs, drops, tries)


def spoil_again(
    moves: Sequence[WonMove],
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    peers: Peers,
    seed: int,
    rivals: Rivals,
) -> Callable[[Pair, int], list[Pair]]:
    """Makes a pair of these moves once more, `attempt` 1, 2, …: other chances, the same move and strategy."""
    sources = {won.move_id: won for won in moves}
    options = {choice.name: choice.options for choice in choices}

    def again(pair: Pair, attempt: int) -> list[Pair]:
        won, strategy = sources[pair.move_id], strategies[pair.strategy]
        material = _material(won, peers, rivals)
        made = _spoil(won, material, strategy, options[strategy.name], seed, attempt=attempt)
        return [other for other in made if isinstance(other, Pair)]

    return again


def _taken(moves: Sequence[WonMove], strategy: Strategy) -> list[WonMove]:
    return [won for won in moves if (won.episode.outcome == "aborted") == (strategy.takes == "aborted")]


def instance_of(won: WonMove) -> InstanceKey:
    return InstanceKey(won.episode.game, won.episode.experiment, won.episode.task_id)


def _chance(seed: int, won: WonMove, strategy: Strategy, attempt: int = 0) -> random.Random:
    """Each `attempt` (0 is the first) has chances of its own."""
    again = (attempt,) if attempt else ()
    return random.Random(int(content_id(seed, won.move_id, strategy.name, *again), 16))


def _share(moves: Sequence[WonMove], name: str, share: float, seed: int) -> set[str]:
    """The moves that a strategy gets: of each game the wanted share, at least one."""
    games: dict[str, list[str]] = defaultdict(list)
    for won in moves:
        games[won.episode.game].append(won.move_id)
    chosen: set[str] = set()
    for ids in games.values():
        ids.sort(key=lambda i: content_id(seed, "share", name, i))
        chosen.update(ids[: max(1, round(share * len(ids)))])
    return chosen


def _material(won: WonMove, peers: Peers, rivals: Rivals) -> Material:
    game, move = won.episode.game, won.move
    others = rivals.get(place_of(game, move), ()) if rivals else ()
    return Material(move, game, peers.get((game, move.role), ()), others)


def _spoil(
    won: WonMove, material: Material, strategy: Strategy, options: Mapping[str, str], seed: int,
    drafts: Mapping[str, Draft] = MappingProxyType({}), attempt: int = 0,
) -> list[Pair | Drop]:  # fmt: skip
    """One result or more."""
    if strategy.asks is not None:
        asks = strategy.asks(material, _chance(seed, won, strategy), options)
        answered = with_drafts(material, strategy.asked, asks, drafts)
        if isinstance(answered, Decline):
            return [_drop(won, strategy.name, answered.reason)]
        material = answered
    result = strategy.corrupt(material, _chance(seed, won, strategy, attempt), options)
    if isinstance(result, Decline):
        return [_drop(won, strategy.name, result.reason)]
    several = (result,) if isinstance(result, Corruption) else result
    return [_pair(won, strategy, made) for made in several] or [_drop(won, strategy.name, "nothing_made")]


def _pair(won: WonMove, strategy: Strategy, result: Corruption) -> Pair | Drop:
    episode, move = won.episode, won.move
    if result.text.split() == move.reply.split():
        return _drop(won, strategy.name, "identical", result.detail)
    own, other = (Message("assistant", move.reply),), (Message("assistant", result.text),)
    chosen, rejected = (own, other) if strategy.takes == "won" else (other, own)
    return Pair(
        content_id("pair", won.move_id, strategy.name, result.text), move.prompt, chosen, rejected, strategy.name,
        result.detail, episode.game, episode.experiment,
        episode.task_id, episode.sample, episode.episode_id, won.move_id, move.index, move.player, move.role,
        move.model, episode.outcome, episode.main_score, NOT_VERIFIED, "", NOT_VERIFIED, "", episode.instance_hash, "",
    )  # fmt: skip


def _drop(won: WonMove, strategy: str, reason: str, detail: str = "") -> Drop:
    e = won.episode
    return Drop(
        "corrupt", reason, detail, won.move_id, "", None, e.game, e.experiment, e.task_id, e.sample, won.move.index,
        strategy,
    )  # fmt: skip
