"""What a pair set says of itself: the manifest, from which the card is written. Holds no time and no machine path.

The same runs, options and seed give the same manifest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pairgen.records import SCHEMA_VERSION, Episode, Messages, Pair, to_dict
from pipelines.corrupt import Built, CorruptConfig
from pipelines.decontaminate import EvalSource, EvalSplit
from pipelines.errands import DraftUse
from pipelines.funnel import StageCount
from pipelines.lengths import Lengths, lengths_of
from pipelines.mixed import GENERAL, Mixed
from pipelines.played import ModelPlayed, played_of
from pipelines.refine import NO_QUALITY, Quality
from pipelines.screen import Removed
from pipelines.verdicts import recorded_side


@dataclass(frozen=True, slots=True)
class Versions:
    """What made the set; `clemcore` lists the versions that the episodes were played with."""

    pairgen: str
    python: str
    datasets: str
    pyarrow: str
    clemcore: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunUsed:
    """A run that the moves come from; empty or -1 where the run does not say.

    `lora` is the adapter that the model had, `partner` the model that spoke for the other players; `clembench` is the
    commit of the checkout that the games came from; `chat_template_kwargs` (KEY=VALUE) went to the chat template.
    """

    name: str
    command: str
    model: str
    revision: str
    temperature: float
    top_p: float
    max_tokens: int
    episodes: int
    lora: str = ""
    partner: str = ""
    clembench: str = ""
    seed: int = -1
    chat_template_kwargs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    outcome: str
    episodes: int


@dataclass(frozen=True, slots=True)
class VerdictCount:
    """Of so many pairs the game master said this to one side."""

    side: str
    verdict: str
    pairs: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Pairs of one game and strategy on both sides of the split."""

    game: str
    strategy: str
    train: int
    test: int


@dataclass(frozen=True, slots=True)
class Judged:
    """Of the pairs of one game and strategy, so many got this verdict for their rejected side."""

    game: str
    strategy: str
    verdict: str
    pairs: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was kept out: where the evaluation instances come from, how many, and which of them were met here."""

    sources: tuple[EvalSource, ...]
    keys: int
    contents: int
    removed_pairs: int
    removed: tuple[Removed, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that a pair set says of itself.

    `quality` is what the audit found, and what there was too little of; `imported` names the pair file that the set was
    read from, where it was.
    `longest_row` is the characters of the longest prompt with the longer of its two sides; `longer_rejected` the share
    of pairs whose rejected side is the longer one; `unknown_finish` counts harvested moves that do not say why the
    model ended; `recorded_rejected` counts pairs whose rejected side is the model's own move; `drafts` says what models
    were asked for; `content` is a hash of all rows; `mixed` says what else the set was mixed of, where it was; `played`
    how the models did in the episodes.
    """

    kind: str
    schema: int
    command: str
    config: CorruptConfig
    versions: Versions
    runs: tuple[RunUsed, ...]
    models: tuple[str, ...]
    outcomes: tuple[OutcomeCount, ...]
    pairs: int
    train: int
    test: int
    funnel: tuple[StageCount, ...]
    table: tuple[Cell, ...]
    verdicts: tuple[VerdictCount, ...]
    lengths: tuple[Lengths, ...]
    longest_row: int
    longer_rejected: float
    unknown_finish: int
    recorded_rejected: int
    drafts: tuple[DraftUse, ...]
    evaluation: Evaluation
    content: str
    quality: Quality = NO_QUALITY
    imported: str = ""
    judged: tuple[Judged, ...] = ()
    mixed: Mixed | None = None
    played: tuple[ModelPlayed, ...] = ()


def make_manifest(
    built: Built,
    config: CorruptConfig,
    evaluation: EvalSplit,
    notes: Sequence[str],
    episodes: Sequence[Episode],
    runs: Sequence[RunUsed],
    versions: Versions,
    imported: str = "",
) -> Manifest:
    """The manifest of a pair set that was built from these episodes, or `imported` from a file of this name."""
    outcomes = Counter(e.outcome for e in episodes)
    removed = sum(s.entered - s.kept for s in built.funnel if s.stage == "decontaminate")
    return Manifest(
        kind="pairs",
        schema=SCHEMA_VERSION,
        command=f"pairgen import {imported}" if imported else command_of(config, [r.name for r in runs]),
        config=config,
        versions=versions,
        runs=tuple(runs),
        outcomes=tuple(OutcomeCount(name, outcomes[name]) for name in sorted(outcomes)),
        funnel=built.funnel,
        unknown_finish=built.unknown_finish,
        drafts=built.drafts,
        evaluation=Evaluation(
            evaluation.sources, len(evaluation.keys), len(evaluation.contents), removed,
            built.removed, (*notes, *built.notes),
        ),
        quality=built.quality,
        imported=imported,
        **_facts(built.train, built.test),
        played=played_of(episodes),
    )  # fmt: skip


def with_pairs(manifest: Manifest, train: Sequence[Pair], test: Sequence[Pair]) -> Manifest:
    """The manifest with everything that is read off the pairs themselves as these have it."""
    return dataclasses.replace(manifest, **_facts(train, test))


def _facts(train: Sequence[Pair], test: Sequence[Pair]) -> dict[str, Any]:
    """The fields of a manifest that the pairs alone decide."""
    pairs = [*train, *test]
    return {
        "models": tuple(sorted({p.model for p in pairs if p.model or p.strategy != GENERAL})),
        "pairs": len(pairs),
        "train": len(train),
        "test": len(test),
        "table": _table(pairs),
        "verdicts": _verdicts(pairs),
        "lengths": _lengths(pairs),
        "longest_row": max((_size(p.prompt) + max(_size(p.chosen), _size(p.rejected)) for p in pairs), default=0),
        "longer_rejected": _share_longer(pairs),
        "recorded_rejected": sum(p.outcome != "" and recorded_side(p) == "rejected" for p in pairs),
        "content": content_of(pairs),
        "judged": _judged(pairs),
    }


def command_of(config: CorruptConfig, runs: Sequence[str]) -> str:
    """The command line that makes this set again, with the names of folders and files alone."""
    words = ["pairgen", "corrupt", *runs]
    default = CorruptConfig()
    for name, value in to_dict(config).items():
        option = "--" + name.replace("_", "-")
        if value == to_dict(getattr(default, name)) and name not in ("strategy", "seed"):
            continue
        if value is True:
            words.append(option)
        elif value is False:
            words.append("--no-" + option[2:])
        else:
            words += [w for v in (value if isinstance(value, list) else [value]) for w in (option, str(v))]
    return " ".join(words)


def content_of(pairs: Iterable[Pair]) -> str:
    """A hash of the rows in full, whatever their order and whatever file format they are kept in."""
    return content_of_rows(to_dict(pair) for pair in sorted(pairs, key=lambda p: p.pair_id))


def content_of_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """`content_of` for rows that come as plain data, in the order of their ids."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()


def _table(pairs: Sequence[Pair]) -> tuple[Cell, ...]:
    cells = Counter((p.game, p.strategy, p.split) for p in pairs)
    names = sorted({(game, strategy) for game, strategy, _ in cells})
    return tuple(Cell(*name, cells[(*name, "train")], cells[(*name, "test")]) for name in names)


def _judged(pairs: Sequence[Pair]) -> tuple[Judged, ...]:
    # "violation (order)" is a violation, and "unverifiable: diverged" unverifiable
    counts = Counter((p.game, p.strategy, re.split(r"[ :]", p.rejected_verdict)[0]) for p in pairs)
    return tuple(Judged(*name, counts[name]) for name in sorted(counts))


def _verdicts(pairs: Sequence[Pair]) -> tuple[VerdictCount, ...]:
    counts = Counter(("chosen", p.chosen_verdict) for p in pairs) + Counter(
        ("rejected", p.rejected_verdict) for p in pairs
    )
    return tuple(VerdictCount(side, verdict, counts[side, verdict]) for side, verdict in sorted(counts))


def _size(messages: Messages) -> int:
    return sum(len(m.content) for m in messages)


def _lengths(pairs: Sequence[Pair]) -> tuple[Lengths, ...]:
    columns = {
        "prompt": [_size(p.prompt) for p in pairs],
        "chosen": [_size(p.chosen) for p in pairs],
        "rejected": [_size(p.rejected) for p in pairs],
    }
    return tuple(lengths_of(name, sizes) for name, sizes in columns.items() if sizes)


def _share_longer(pairs: Sequence[Pair]) -> float:
    longer = sum(_size(p.rejected) > _size(p.chosen) for p in pairs)
    return round(longer / len(pairs), 4) if pairs else 0.0
