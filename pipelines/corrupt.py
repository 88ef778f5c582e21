"""Corrupt: from moves to pairs, and the whole way from episodes to a split pair set. Knows no file and no screen.

harvest, what models are asked, the strategies, decontaminate, verify, dedup, split; each stage hands on what it kept
and why it dropped.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from pairgen.errors import UsageProblem
from pairgen.records import Drop, Episode, InstanceKey, Message, Pair, content_id
from pairgen.strategy import Choice, Decline, Draft, Material, Strategy, parse_choice
from pipelines.decontaminate import EvalSplit, Net, decontaminate
from pipelines.dedup import dedup
from pipelines.errands import NOTHING_ASKED, Drafter, DraftUse, Errand, errand, with_drafts
from pipelines.funnel import StageCount, count_stage
from pipelines.harvest import Caps, Peers, Rivals, WonMove, find_peers, find_rivals, harvest, harvest_aborted, place_of
from pipelines.split import split
from pipelines.verdicts import Policy, Try, Verdict, judge

NOT_VERIFIED = "unverifiable: not verified"

Referee = Callable[[Sequence[Pair]], Mapping[Try, Verdict]]
Watch = Callable[[Sequence[WonMove], str], Iterable[WonMove]]


@dataclass(frozen=True, slots=True)
class CorruptConfig:
    """The options of `pairgen corrupt` that shape the pairs, under the names that they have there."""

    strategy: tuple[str, ...] = ("verbose",)
    style: str = ""
    games: tuple[str, ...] = ()
    per_player: int = 2
    per_instance: int = 0
    per_game: int = 0
    test_size: float = 0.1
    seed: int = 42
    eval_keys: tuple[str, ...] = ()
    eval_split: str = ""
    eval_results: tuple[str, ...] = ()
    no_eval_split: bool = False
    verify: bool = True
    require_violation: bool = True
    require_accepted_chosen: bool = True
    require_verified: bool = False
    model: str = ""
    judge: str = ""
    license: str = "apache-2.0"


class Made(NamedTuple):
    """`entered` = one try for each move and strategy = `pairs` plus `drops`."""

    pairs: list[Pair]
    drops: list[Drop]
    entered: int


class Built(NamedTuple):
    """A pair set before it is written: both sides of the split, every drop, and the counts of each stage."""

    train: list[Pair]
    test: list[Pair]
    drops: list[Drop]
    funnel: tuple[StageCount, ...]
    removed: tuple[InstanceKey, ...]
    unknown_finish: int
    drafts: tuple[DraftUse, ...] = ()


def choose(texts: Sequence[str], style: str, strategies: Mapping[str, Strategy]) -> list[Choice]:
    """The strategies that `--strategy` and `--style` ask for.

    Raises UsageProblem for what is not known, for a strategy given twice, and for a style that none of them takes.
    """
    choices = [parse_choice(text, strategies) for text in texts]
    names = [c.name for c in choices]
    for name in names:
        if names.count(name) > 1:
            raise UsageProblem(f"--strategy {name} was given twice: give it once, with a weight (such as {name}:2).")
    if not style:
        return choices
    if not any("style" in strategies[name].options for name in names):
        raise UsageProblem(f"--style {style}: {' and '.join(names)} has no styles, leave it out.")
    return [
        c._replace(options={"style": style, **c.options}) if "style" in strategies[c.name].options else c
        for c in choices
    ]


def build(
    episodes: Sequence[Episode],
    config: CorruptConfig,
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    evaluation: EvalSplit,
    watch: Watch = lambda moves, _: moves,
    referee: Referee | None = None,
    drafter: Drafter = lambda _: NOTHING_ASKED,
) -> Built:
    """Make the pairs of these episodes. `watch` may show progress over the moves that it hands on unchanged.

    `referee` gives the verdicts on both sides of pairs; without one they stay unverified, and all are kept. `drafter`
    gives the replies that strategies ask for; about an evaluation instance nobody is asked.
    """
    net = Net(evaluation)
    net.learn(episodes)

    def caught(episode: Episode) -> bool:
        return bool(net.catch(episode.key.instance, episode.instance_hash))

    caps = Caps(config.per_player, config.per_instance, config.per_game)
    takes = {strategies[c.name].takes for c in choices}
    won = harvest(episodes if "won" in takes else (), caps, config.seed, caught)
    lost = harvest_aborted(episodes if "aborted" in takes else (), caps, config.seed, caught)
    peers = find_peers(episodes, config.seed, caught)
    rivals = find_rivals(episodes) if any(c.name == "contrast" for c in choices) else {}
    moves = [*won.kept, *lost.kept]
    secret = {w.move_id: why for w in moves if (why := net.catch(_instance(w), w.episode.instance_hash))}
    errands = asks_of(moves, choices, strategies, peers, config.seed, secret)
    drafted = drafter(errands) if errands else NOTHING_ASKED
    made = corrupt(moves, choices, strategies, peers, config.seed, watch, rivals, drafted.drafts, secret)
    clean = decontaminate(made.pairs, net)
    judged = judge(clean.kept, referee(clean.kept), policy_of(config, strategies)) if referee else None
    proven = judged.kept if judged else clean.kept
    unique = dedup(proven)
    sides = split(unique.kept, config.test_size, config.seed)
    funnel = (
        *([count_stage("harvest", "moves", won.entered, len(won.kept), won.drops)] if "won" in takes else []),
        *(
            [count_stage("harvest_aborted", "moves", lost.entered, len(lost.kept), lost.drops)]
            if "aborted" in takes
            else []
        ),
        count_stage("corrupt", "tries", made.entered, len(made.pairs), made.drops),
        count_stage("decontaminate", "pairs", len(made.pairs), len(clean.kept), clean.drops),
        *([count_stage("verify", "pairs", len(clean.kept), len(judged.kept), judged.drops)] if judged else []),
        count_stage("dedup", "pairs", len(proven), len(unique.kept), unique.drops),
    )
    drops = [*won.drops, *lost.drops, *made.drops, *clean.drops, *(judged.drops if judged else []), *unique.drops]
    unknown = won.unknown_finish + lost.unknown_finish
    return Built(sides.train, sides.test, drops, funnel, clean.removed, unknown, drafted.uses)


def policy_of(config: CorruptConfig, strategies: Mapping[str, Strategy]) -> Policy:
    """What verdicts a pair needs to be kept."""
    strict = {name for name, strategy in strategies.items() if strategy.requires_violation}
    proof = {name for name, strategy in strategies.items() if strategy.requires_proof}
    return Policy(
        frozenset(strict if config.require_violation else ()), config.require_accepted_chosen, config.require_verified,
        frozenset(proof),
    )  # fmt: skip


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
    """One pair for each move and strategy, unless the strategy declines; a strategy of less weight gets fewer moves.

    Each strategy has the moves that it takes: won or aborting ones. `secret` are the moves about which nobody may be
    asked, and why. The order of moves and of choices does not matter.
    """
    heaviest = max(c.weight for c in choices)
    pairs: list[Pair] = []
    drops: list[Drop] = []
    entered = 0
    for choice in sorted(choices, key=lambda c: c.name):
        strategy = strategies[choice.name]
        taken = _taken(moves, strategy)
        entered += len(taken)
        chosen = _share(taken, choice.name, choice.weight / heaviest, seed)
        for won in watch(taken, choice.name):
            if won.move_id not in chosen:
                drops.append(_drop(won, choice.name, "share"))
                continue
            if strategy.asks is not None and won.move_id in secret:
                drops.append(_drop(won, choice.name, secret[won.move_id]))
                continue
            material = _material(won, peers, rivals)
            result = _spoil(won, material, strategy, choice.options, seed, drafts)
            if isinstance(result, Pair):
                pairs.append(result)
            else:
                drops.append(result)
    return Made(pairs, drops, entered)


def _taken(moves: Sequence[WonMove], strategy: Strategy) -> list[WonMove]:
    return [won for won in moves if (won.episode.outcome == "aborted") == (strategy.takes == "aborted")]


def _instance(won: WonMove) -> InstanceKey:
    return InstanceKey(won.episode.game, won.episode.experiment, won.episode.task_id)


def _chance(seed: int, won: WonMove, strategy: Strategy) -> random.Random:
    return random.Random(int(content_id(seed, won.move_id, strategy.name), 16))


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
    won: WonMove,
    material: Material,
    strategy: Strategy,
    options: Mapping[str, str],
    seed: int,
    drafts: Mapping[str, Draft],
) -> Pair | Drop:
    episode, move = won.episode, won.move
    if strategy.asks is not None:
        asks = strategy.asks(material, _chance(seed, won, strategy), options)
        answered = with_drafts(material, strategy.asked, asks, drafts)
        if isinstance(answered, Decline):
            return _drop(won, strategy.name, answered.reason)
        material = answered
    result = strategy.corrupt(material, _chance(seed, won, strategy), options)
    if isinstance(result, Decline):
        return _drop(won, strategy.name, result.reason)
    if result.text.split() == move.reply.split():
        return _drop(won, strategy.name, "identical", result.detail)
    own, other = (Message("assistant", move.reply),), (Message("assistant", result.text),)
    chosen, rejected = (own, other) if strategy.takes == "won" else (other, own)
    return Pair(
        content_id("pair", won.move_id, strategy.name, result.text), move.prompt, chosen, rejected,
        strategy.name, result.detail, episode.game, episode.experiment,
        episode.task_id, episode.sample, episode.episode_id, won.move_id, move.index, move.player, move.role,
        move.model, episode.outcome, episode.main_score, NOT_VERIFIED, "", NOT_VERIFIED, "", episode.instance_hash, "",
    )  # fmt: skip


def _drop(won: WonMove, strategy: str, reason: str, detail: str = "") -> Drop:
    e = won.episode
    return Drop(
        "corrupt", reason, detail, won.move_id, "", None, e.game, e.experiment, e.task_id, e.sample, won.move.index,
        strategy,
    )  # fmt: skip
