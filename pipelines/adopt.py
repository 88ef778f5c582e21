"""Adopt: a pair file that others published becomes a pair set, split and audited, with its repeats counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

from pairgen.errors import PairgenError
from pairgen.records import Pair
from pipelines import pairfile, pairset
from pipelines.balance import Quota
from pipelines.corrupt import Built, CorruptConfig
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.dedup import DEFAULT_LIMITS, repeats
from pipelines.first_prompts import templates_of
from pipelines.funnel import ReasonCount, count_stage, drop_pair
from pipelines.manifest import Manifest, make_manifest
from pipelines.refine import Plan, refine
from pipelines.slim import dropped, frame_of, slim
from pipelines.spoil import NOT_VERIFIED

CONFIG = CorruptConfig(strategy=(), no_eval_split=True, verify=False, license="unknown")
"""Nothing is known of the license of others' pairs, nor of what is evaluation for them."""


class Adopted(NamedTuple):
    """The set's manifest, and what in the file repeats, by reason: counted, and dropped only where that was asked."""

    manifest: Manifest
    repeats: tuple[ReasonCount, ...]


def adopt(path: Path, out: Path, *, dedup: bool = False, overwrite: bool = False) -> Adopted:
    """Write the pairs of a file as the set `out`: all that differ in their sides, with `dedup` without what repeats.

    Raises UsageProblem and PairgenError with the fix, before anything is written.
    """
    pairset.check_out(out, overwrite=overwrite)
    read = [_unverified(pair) for pair in pairfile.read_pairs(path)]
    unfit = [drop_pair(pair, "import", why) for pair in read if (why := _unfit(pair))]
    pairs = sorted((pair for pair in read if not _unfit(pair)), key=lambda p: (p.pair_id, p.strategy))
    if not pairs:
        raise PairgenError(f"{path} holds no pair that teaches: its sides are equal or empty, give another file.")
    frame = frame_of(pairs)
    rows = slim(frame)
    templates = templates_of(rows, frame)
    repeated = dropped(pairs, repeats(rows, DEFAULT_LIMITS, frame, templates), "dedup")
    plan = Plan(DEFAULT_LIMITS if dedup else None, Quota(), CONFIG.test_size, CONFIG.seed)
    refined = refine(pairs, templates, plan)
    funnel = (count_stage("import", "pairs", len(read), len(pairs), unfit), *refined.stages)
    built = Built(refined.train, refined.test, [*unfit, *refined.drops], funnel, quality=refined.quality)
    made = make_manifest(built, CONFIG, NO_EVAL_SPLIT, (), (), (), pairset.versions(()), path.name)
    pairset.write_pairset(out, built.train, built.test, built.drops, made, overwrite=overwrite)
    return Adopted(made, count_stage("dedup", "pairs", len(pairs), len(pairs) - len(repeated), repeated).dropped)


def _unfit(pair: Pair) -> str:
    """Why nothing can be learned from a pair, whoever asks for it, or ""."""
    chosen, rejected = (" ".join(m.content for m in side).split() for side in (pair.chosen, pair.rejected))
    if not (chosen and rejected):
        return "empty"
    return "identical" if chosen == rejected else ""


def _unverified(pair: Pair) -> Pair:
    chosen, rejected = pair.chosen_verdict or NOT_VERIFIED, pair.rejected_verdict or NOT_VERIFIED
    return dataclasses.replace(pair, chosen_verdict=chosen, rejected_verdict=rejected)
