"""Corrupt: from moves to pairs, and the whole way from episodes to a split pair set. Knows no file and no screen.

harvest, what models are asked, the strategies, the nets, verify, and what refines the set; each stage hands on what it
kept and why it dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pairgen.errors import UsageProblem, did_you_mean
from pairgen.records import Drop, Episode, Pair
from pairgen.strategy import Choice, Strategy, parse_choice
from pipelines.audit import COIN
from pipelines.balance import Quota
from pipelines.decontaminate import EvalSplit, Net, caught
from pipelines.dedup import Limits
from pipelines.errands import NOTHING_ASKED, Drafter, DraftUse
from pipelines.first_prompts import eval_prompts
from pipelines.funnel import StageCount, count_stage
from pipelines.harvest import Caps, find_peers, find_rivals, harvest, harvest_aborted
from pipelines.redraw import Referee, redraw
from pipelines.refine import NO_QUALITY, Plan, Quality, refine
from pipelines.screen import Played, Prompter, Removed, ask_nobody, removed, screen
from pipelines.slim import frame_of, parted, slim
from pipelines.spoil import Watch, asks_of, corrupt, instance_of, spoil_again
from pipelines.tokens import Tokenizer
from pipelines.verdicts import Policy, judge


@dataclass(frozen=True, slots=True)
class CorruptConfig:
    """The options of `pairgen corrupt` that shape the pairs, under the names that they have there."""

    strategy: tuple[str, ...] = ("verbose",)
    style: str = ""
    games: tuple[str, ...] = ()
    per_player: int = 2
    moves_per_game: int = 0
    per_instance: int = 0
    per_game: int = 0
    per_strategy: tuple[str, ...] = ()
    total: int = 0
    max_per_completion: int = 2
    max_per_prompt: int = 0
    near: float = 0.9
    max_shortcut: float = 0.0
    tokenizer: str = ""
    max_length: int = 0
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


class Built(NamedTuple):
    """A pair set before it is written: both sides of the split, every drop, and the counts of each stage.

    `removed` are the instances that the nets caught, and `notes` what these could not see.
    """

    train: list[Pair]
    test: list[Pair]
    drops: list[Drop]
    funnel: tuple[StageCount, ...]
    removed: tuple[Removed, ...] = ()
    unknown_finish: int = 0
    drafts: tuple[DraftUse, ...] = ()
    notes: tuple[str, ...] = ()
    quality: Quality = NO_QUALITY


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
    drafter: Drafter = lambda _: NOTHING_ASKED,
    prompter: Prompter = ask_nobody,
    tokenizer: Tokenizer | None = None,
) -> Built:
    """Make the pairs of these episodes. `watch` may show progress over the moves that it hands on unchanged.

    `referee` gives the verdicts on both sides of pairs (it may be asked more than once, see `redraw`); without one they
    stay unverified, and all are kept. `drafter` gives the replies that strategies ask for; about an evaluation instance
    nobody is asked. `prompter` gives the first prompts of evaluation instances, `tokenizer` is the one to train with.
    """
    plan = plan_of(config, [c.name for c in choices], strategies)
    net = Net(evaluation)
    net.learn(episodes)

    def is_evaluation(episode: Episode) -> bool:
        return bool(net.catch(episode.key.instance, episode.instance_hash))

    played = Played(eval_prompts(episodes), eval_prompts(episodes, is_evaluation))
    screened = screen(played, evaluation, net, prompter)
    net.note(screened.found)
    caps = Caps(config.per_player, config.moves_per_game)
    takes = {strategies[c.name].takes for c in choices}
    won = harvest(episodes if "won" in takes else (), caps, config.seed, is_evaluation)
    lost = harvest_aborted(episodes if "aborted" in takes else (), caps, config.seed, is_evaluation)
    peers = find_peers(episodes, config.seed, is_evaluation)
    rivals = find_rivals(episodes) if any(c.name == "contrast" for c in choices) else {}
    moves = [*won.kept, *lost.kept]
    secret = {w.move_id: why for w in moves if (why := net.catch(instance_of(w), w.episode.instance_hash))}
    errands = asks_of(moves, choices, strategies, peers, config.seed, secret)
    drafted = drafter(errands) if errands else NOTHING_ASKED
    made = corrupt(moves, choices, strategies, peers, config.seed, watch, rivals, drafted.drafts, secret)
    pairs = sorted(made.pairs, key=lambda p: (p.pair_id, p.strategy))
    rows = slim(frame_of(pairs))
    out = caught(rows, net)
    clean, leaks = parted(pairs, out, "decontaminate")
    judged = None
    if referee:
        again = spoil_again(won.kept, choices, strategies, peers, config.seed, rivals)
        policy = policy_of(config, strategies)
        drawn = redraw(clean, referee, again, policy)
        judged = judge(drawn.pairs, drawn.verdicts, policy, drawn.attempts)
    refined = refine(judged.kept if judged else clean, screened.templates, plan, tokenizer)
    funnel = (
        *([count_stage("harvest", "moves", won.entered, len(won.kept), won.drops)] if "won" in takes else []),
        *(
            [count_stage("harvest_aborted", "moves", lost.entered, len(lost.kept), lost.drops)]
            if "aborted" in takes
            else []
        ),
        count_stage("corrupt", "tries", made.entered, len(made.pairs), made.drops),
        count_stage("decontaminate", "pairs", len(made.pairs), len(clean), leaks),
        *([count_stage("verify", "pairs", len(clean), len(judged.kept), judged.drops)] if judged else []),
        *refined.stages,
    )
    drops = [*won.drops, *lost.drops, *made.drops, *leaks, *(judged.drops if judged else []), *refined.drops]
    unknown = won.unknown_finish + lost.unknown_finish
    return Built(
        refined.train,
        refined.test,
        drops,
        funnel,
        removed(rows, out),
        unknown,
        drafted.uses,
        screened.notes,
        refined.quality,
    )


def plan_of(config: CorruptConfig, names: Sequence[str], strategies: Mapping[str, Strategy]) -> Plan:
    """What the finished set is to be like, where it is made by the strategies of these names.

    Raises UsageProblem for weights of strategies that are not among them, and for a limit that no set can keep.
    """
    weights = []
    for text in config.per_strategy:
        name, _, weight = text.partition(":")
        if name not in names:
            raise UsageProblem(f"--per-strategy {name}: no --strategy of that name, {did_you_mean(name, names)}")
        try:
            weights.append((name, float(weight)))
        except ValueError:
            raise UsageProblem(f"--per-strategy {text}: write it as NAME:WEIGHT, such as {name}:2.") from None
        if not 0 <= weights[-1][1] < math.inf:
            raise UsageProblem(f"--per-strategy {text}: a weight is 0 or more.")
    if 0 < config.max_shortcut <= COIN:
        raise UsageProblem(f"--max-shortcut {config.max_shortcut:g}: a coin is right in half of the cases, give more.")
    if config.max_length and not config.tokenizer:
        raise UsageProblem("--max-length is in tokens: say with --tokenizer MODEL whose.")
    several = frozenset(name for name, strategy in strategies.items() if strategy.most_per_prompt)
    limits = Limits(1, config.max_per_completion, config.max_per_prompt, config.near, several=several)
    quota = Quota(config.per_instance, config.per_game, tuple(weights), config.total)
    return Plan(limits, quota, config.test_size, config.seed, config.max_shortcut, config.max_length)


def policy_of(config: CorruptConfig, strategies: Mapping[str, Strategy]) -> Policy:
    """What verdicts a pair needs to be kept."""
    strict = {name for name, strategy in strategies.items() if strategy.requires_violation}
    proof = {name for name, strategy in strategies.items() if strategy.requires_proof}
    return Policy(
        frozenset(strict if config.require_violation else ()), config.require_accepted_chosen, config.require_verified,
        frozenset(proof),
    )  # fmt: skip
