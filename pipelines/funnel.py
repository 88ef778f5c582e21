"""The funnel: how many went into each stage, how many came out, and why the others did not. Knows no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pairgen.records import Drop, Pair


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many were dropped for one reason."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class StageCount:
    """One stage: `entered` = `kept` + the sum of `dropped`. `unit` says what is counted."""

    stage: str
    unit: str
    entered: int
    kept: int
    dropped: tuple[ReasonCount, ...]


class Reason(NamedTuple):
    """What a reason means, and what to do when nothing is left because of it."""

    meaning: str
    mend: str


PLAY_MORE = "play more episodes, or more samples of each"
REASONS: dict[str, Reason] = {
    "outcome_lose": Reason("the episode was lost", PLAY_MORE),
    "outcome_aborted": Reason("the episode was aborted: a player broke the rules", PLAY_MORE),
    "outcome_error": Reason("the episode could not be played to its end", "see the errors that the run recorded"),
    "outcome_unscored": Reason(
        "the episode has no outcome", "let clem score fill in the results and import them again"
    ),
    "repeated_episode": Reason("the same episode came in twice", "give each run once"),
    "programmatic": Reason("the game scripts this player itself", "take games in which a model speaks"),
    "partner": Reason("a partner model spoke, not the learner", "play games in which the learner speaks"),
    "pseudo": Reason("the game put this reply into the model's mouth", "take games in which a model speaks"),
    "violation": Reason("the game master did not accept the move", PLAY_MORE),
    "before_abort": Reason("not the move that aborted the episode", PLAY_MORE),
    "no_violation": Reason("the game master gave no reason why it aborted the episode", "choose other --games"),
    "unfinished": Reason("the model was cut off", "raise --max-tokens of the rollout"),
    "empty": Reason("the reply, or the prompt, holds no text", "look at the raw replies of the run"),
    "not_text": Reason("the text cannot be written as UTF-8", "look at the raw replies of the run"),
    "cap_per_player": Reason("over --per-player", "raise --per-player"),
    "cap_per_game": Reason("over --moves-per-game", "raise --moves-per-game"),
    "cap_per_prompt": Reason(
        "over the most pairs that one prompt may have", "raise per_prompt of the strategy, see --list"
    ),
    "no_rival": Reason(
        "no lost or aborted episode has another reply of this model to the prompt",
        "play more samples of each instance (rollout --samples 8 --temperature 1), or give several runs",
    ),
    "share": Reason("outside the share that the weight gives this strategy", "change the weights"),
    "not_asked": Reason("nobody was asked for the reply that the strategy needs", "give --model, or --judge"),
    "identical": Reason("the rejected side says the same as the chosen one", "choose another --strategy"),
    "eval_key": Reason(
        "an evaluation instance, by its name",
        "play other instances, or say --no-eval-split if this set is never judged on them",
    ),
    "eval_content": Reason(
        "an evaluation instance under another name",
        "play other instances, or say --no-eval-split if this set is never judged on them",
    ),
    "chosen_violation": Reason(
        "the game master does not accept the chosen side",
        "say --no-require-accepted-chosen, or of corrected take a stronger --judge",
    ),
    "rejected_accepted": Reason(
        "the game master accepts the rejected side", "choose another --strategy, or say --no-require-violation"
    ),
    "unproven": Reason(
        "the game master could not be asked, and this strategy needs its word",
        "give --clembench DIR with the games that the run was played from",
    ),
    "unverified": Reason(
        "the game master could not be asked", "give --clembench DIR with the games, or leave out --require-verified"
    ),
    "duplicate": Reason("the same prompt, chosen and rejected side as another pair", PLAY_MORE),
    "repeated_chosen": Reason("the same prompt and chosen side as another pair of this strategy", PLAY_MORE),
    "near_duplicate": Reason("nearly the same prompt and chosen side as another pair of this strategy", PLAY_MORE),
    "max_per_completion": Reason("the role says this in more pairs than --max-per-completion", PLAY_MORE),
    "max_per_prompt": Reason("over --max-per-prompt", "raise --max-per-prompt"),
    "eval_prompt": Reason(
        "asks what an evaluation instance asks",
        "play other instances, or say --no-eval-split if this set is never judged on them",
    ),
    "eval_prompt_near": Reason(
        "asks nearly what an evaluation instance asks",
        "play other instances, or say --no-eval-split if this set is never judged on them",
    ),
    "per_instance": Reason("over --per-instance", "raise --per-instance"),
    "per_game": Reason("over --per-game", "raise --per-game"),
    "per_strategy": Reason("outside the share that --per-strategy gives this strategy", "change the weights"),
    "total": Reason("over --total", "raise --total"),
    "shortcut": Reason("a rule on length alone would have told the sides apart too often", "raise --max-shortcut"),
    "special_token": Reason("a text holds a special token of the tokenizer", "look at the raw replies of the run"),
    "over_max_length": Reason("longer than --max-length", "raise --max-length"),
    "same_tokens": Reason("both sides are the same to the tokenizer, but for white space", "choose another --strategy"),
}


def count_stage(stage: str, unit: str, entered: int, kept: int, drops: Sequence[Drop]) -> StageCount:
    """The counts of one stage, most frequent reason first."""
    reasons = Counter(d.reason for d in drops)
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return StageCount(stage, unit, entered, kept, tuple(ReasonCount(*item) for item in ordered))


def count_reasons(funnel: Sequence[StageCount]) -> dict[str, int]:
    """All drops by reason, over all stages, most frequent first."""
    total: Counter[str] = Counter()
    for stage in funnel:
        total.update({r.reason: r.count for r in stage.dropped})
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def meaning(reason: str) -> str:
    """A reason for a person; the words of a strategy that declined speak for themselves."""
    return REASONS[reason].meaning if reason in REASONS else reason.replace("_", " ")


def why_empty(funnel: Sequence[StageCount]) -> str:
    """One sentence on the stage that let nothing through, its main reason, and the way out."""
    stage = next((s for s in funnel if not s.kept), None)
    if stage is None or not stage.dropped:
        return "No pair was made: the run holds no move of a model; play first, or choose other --games."
    top = stage.dropped[0]
    rest = f", and {stage.entered - top.count} for other reasons" if top.count < stage.entered else ""
    mend = REASONS[top.reason].mend if top.reason in REASONS else "choose another --strategy"
    return (
        f"No pair was made: of {stage.entered} {stage.unit} at the stage {stage.stage}, {top.count} were dropped as "
        f"{top.reason} ({meaning(top.reason)}){rest}; {mend}."
    )


def drop_pair(
    pair: Pair, stage: str, reason: str, detail: str = "", kept_id: str = "", score: float | None = None
) -> Drop:
    """The record of a pair that a stage takes out."""
    return Drop(
        stage, reason, detail, pair.pair_id, kept_id, score, pair.game, pair.experiment, pair.task_id, pair.sample,
        pair.move_index, pair.strategy,
    )  # fmt: skip
