"""Corrupt: from won moves to pairs, and the whole way from episodes to a split pair set. Knows no file and no screen.

harvest, the strategies, decontaminate, verify, dedup, split; each stage hands on what it kept and why it dropped.
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
from pairgen.strategy import Choice, Corruption, Decline, Material, Strategy, parse_choice
from pipelines.decontaminate import EvalSplit, Net, decontaminate
from pipelines.dedup import dedup
from pipelines.funnel import StageCount, count_stage, drop_pair
from pipelines.harvest import Caps, Peers, Rivals, WonMove, find_peers, find_rivals, harvest, place_of
from pipelines.redraw import Referee, redraw
from pipelines.split import split
from pipelines.spread import spread
from pipelines.verdicts import Policy, judge

NOT_VERIFIED = "unverifiable: not verified"

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
    license: str = "apache-2.0"


class Made(NamedTuple):
    """`entered` tries are `pairs` plus `drops`."""

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


def choose(texts: Sequence[str], style: str, strategies: Mapping[str, Strategy]) -> list[Choice]:
    """The strategies that `--strategy` and `--style` ask for.

    Raises UsageProblem for what is not known (the values of options, too), for a strategy given twice, and for a style
    that none of them takes.
    """
    choices = [parse_choice(text, strategies) for text in texts]
    names = [c.name for c in choices]
    for name in names:
        if names.count(name) > 1:
            raise UsageProblem(f"--strategy {name} was given twice: give it once, with a weight (such as {name}:2).")
    if style and not any("style" in strategies[name].options for name in names):
        raise UsageProblem(f"--style {style}: {' and '.join(names)} has no styles, leave it out.")
    if style:
        choices = [
            c._replace(options={"style": style, **c.options}) if "style" in strategies[c.name].options else c
            for c in choices
        ]
    for choice in choices:
        strategies[choice.name].check(choice.options)
    return choices


def build(
    episodes: Sequence[Episode],
    config: CorruptConfig,
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    evaluation: EvalSplit,
    watch: Watch = lambda moves, _: moves,
    referee: Referee | None = None,
) -> Built:
    """Make the pairs of these episodes. `watch` may show progress over the moves that it hands on unchanged.

    `referee` gives the verdicts on both sides of pairs (it may be asked more than once, see `redraw`); without one they
    stay unverified, and all are kept.
    """
    net = Net(evaluation)
    net.learn(episodes)

    def caught(episode: Episode) -> bool:
        return bool(net.catch(episode.key.instance, episode.instance_hash))

    won = harvest(episodes, Caps(config.per_player, config.per_instance, config.per_game), config.seed, caught)
    peers = find_peers(episodes, config.seed, caught)
    rivals = find_rivals(episodes) if any(c.name == "contrast" for c in choices) else {}
    made = corrupt(won.kept, choices, strategies, peers, config.seed, watch, rivals)
    clean = decontaminate(made.pairs, net)
    judged = None
    if referee:
        sources = {won_move.move_id: won_move for won_move in won.kept}
        options = {c.name: c.options for c in choices}

        def again(pair: Pair, attempt: int) -> list[Pair]:
            source, strategy = sources[pair.move_id], strategies[pair.strategy]
            material = _material(source, peers, rivals)
            made = _spoil(source, material, strategy, options[strategy.name], config.seed, attempt)
            return [other for other in made if isinstance(other, Pair)]

        policy = policy_of(config, strategies)
        drawn = redraw(clean.kept, referee, again, policy)
        judged = judge(drawn.pairs, drawn.verdicts, policy, drawn.attempts)
    proven = judged.kept if judged else clean.kept
    unique = dedup(proven, several={name for name, s in strategies.items() if s.most_per_prompt})
    sides = split(unique.kept, config.test_size, config.seed)
    funnel = (
        count_stage("harvest", "moves", won.entered, len(won.kept), won.drops),
        count_stage("corrupt", "tries", made.entered, len(made.pairs), made.drops),
        count_stage("decontaminate", "pairs", len(made.pairs), len(clean.kept), clean.drops),
        *([count_stage("verify", "pairs", len(clean.kept), len(judged.kept), judged.drops)] if judged else []),
        count_stage("dedup", "pairs", len(proven), len(unique.kept), unique.drops),
    )
    drops = [*won.drops, *made.drops, *clean.drops, *(judged.drops if judged else []), *unique.drops]
    return Built(sides.train, sides.test, drops, funnel, clean.removed, won.unknown_finish)


def policy_of(config: CorruptConfig, strategies: Mapping[str, Strategy]) -> Policy:
    """What verdicts a pair needs to be kept."""
    strict = {name for name, strategy in strategies.items() if strategy.requires_violation}
    return Policy(
        frozenset(strict if config.require_violation else ()), config.require_accepted_chosen, config.require_verified
    )


def corrupt(
    moves: Sequence[WonMove],
    choices: Sequence[Choice],
    strategies: Mapping[str, Strategy],
    peers: Peers,
    seed: int,
    watch: Watch = lambda moves, _: moves,
    rivals: Rivals = MappingProxyType({}),
) -> Made:
    """What each strategy makes of each move, unless it declines; a strategy of less weight gets fewer moves.

    A try is one rejected side that was looked for: one for each move and strategy, or, where the strategy gave several,
    as many as it gave. What a prompt has too many of (`most_per_prompt`) is dropped. The order of moves and of choices
    does not matter.
    """
    heaviest = max(c.weight for c in choices)
    pairs: list[Pair] = []
    drops: list[Drop] = []
    tries = 0
    for choice in sorted(choices, key=lambda c: c.name):
        strategy, made = strategies[choice.name], []
        chosen = _share(moves, choice.name, choice.weight / heaviest, seed)
        for won in watch(moves, choice.name):
            if won.move_id not in chosen:
                drops.append(_drop(won, choice.name, "share"))
                tries += 1
                continue
            results = _spoil(won, _material(won, peers, rivals), strategy, choice.options, seed)
            tries += len(results)
            made += [result for result in results if isinstance(result, Pair)]
            drops += [result for result in results if isinstance(result, Drop)]
        kept, over = spread(made, int(choice.options.get("per_prompt", strategy.most_per_prompt)), seed)
        pairs += kept
        drops += [drop_pair(pair, "corrupt", "cap_per_prompt") for pair in over]
    return Made(pairs, drops, tries)


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
    won: WonMove, material: Material, strategy: Strategy, options: Mapping[str, str], seed: int, attempt: int = 0
) -> list[Pair | Drop]:
    """One result or more; each `attempt` (0 is the first) has chances of its own."""
    again = (attempt,) if attempt else ()
    chance = random.Random(int(content_id(seed, won.move_id, strategy.name, *again), 16))
    result = strategy.corrupt(material, chance, options)
    if isinstance(result, Decline):
        return [_drop(won, strategy.name, result.reason)]
    several = (result,) if isinstance(result, Corruption) else result
    return [_pair(won, strategy.name, made) for made in several] or [_drop(won, strategy.name, "nothing_made")]


def _pair(won: WonMove, strategy: str, result: Corruption) -> Pair | Drop:
    episode, move = won.episode, won.move
    if result.text.split() == move.reply.split():
        return _drop(won, strategy, "identical", result.detail)
    return Pair(
        content_id("pair", won.move_id, strategy, result.text), move.prompt, (Message("assistant", move.reply),),
        (Message("assistant", result.text),), strategy, result.detail, episode.game, episode.experiment,
        episode.task_id, episode.sample, episode.episode_id, won.move_id, move.index, move.player, move.role,
        move.model, episode.outcome, episode.main_score, NOT_VERIFIED, "", NOT_VERIFIED, "", episode.instance_hash, "",
    )  # fmt: skip


def _drop(won: WonMove, strategy: str, reason: str, detail: str = "") -> Drop:
    e = won.episode
    return Drop(
        "corrupt", reason, detail, won.move_id, "", None, e.game, e.experiment, e.task_id, e.sample, won.move.index,
        strategy,
    )  # fmt: skip
