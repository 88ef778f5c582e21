"""Mix: a pair set and a general preference set at a ratio, as one pair set. The own test side stays as it is.

General pairs go to train alone: so the test side is comparable with that of the set before it was mixed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.console import progress
from pairgen.errors import PairgenError, UsageProblem, did_you_mean
from pairgen.records import Drop, Pair, content_id
from pipelines import pairset
from pipelines.audit import audit
from pipelines.funnel import count_stage, drop_pair
from pipelines.general import FLAWS, SIDES, Flawed, General, convert
from pipelines.manifest import Manifest, with_pairs
from pipelines.mixed import GENERAL, Flaw, Mixed, Stratum
from pipelines.preferences import Source, open_source
from pipelines.ratio import Row, Shares, capped, chosen, parse_ratio, shares
from pipelines.slim import frame_of, slim
from pipelines.spoil import NOT_VERIFIED

SOURCE = "source"
"""A column that many general sets have, kept where it is there."""
LONGEST_EXAMPLE = 160


@dataclass(frozen=True, slots=True)
class MixConfig:
    """How a mixture is made. `license` "" takes the general set's own word for it; `total` 0 takes all own pairs."""

    ratio: str = "1:1"
    stratify: str = ""
    total: int = 0
    max_per_prompt: int = 20
    license: str = ""
    seed: int = 42


class Read(NamedTuple):
    """What the general set holds: its sound rows, and the others counted by flaw with the first of each."""

    rows: list[Row]
    flaws: tuple[Flaw, ...]
    read: int


def mix(pairs: Path, general: str, out: Path, config: MixConfig, *, overwrite: bool = False) -> Manifest:
    """Write the mixture to the folder `out`.

    Raises UsageProblem and PairgenError with the fix, before anything is written.
    """
    ratio = parse_ratio(config.ratio)
    if out.resolve() == pairs.resolve():
        raise UsageProblem(f"--out {out} is the pair set that is mixed: use another folder.")
    pairset.check_out(out, overwrite=overwrite)
    manifest = pairset.read_manifest(pairs)
    own = pairset.read_pairs(pairs)
    train, test = ([pair for pair in own if pair.split == side] for side in ("train", "test"))
    if not train:
        raise PairgenError(f"{pairs} holds no pairs to train on: make the set again, or give another.")
    source = open_source(general)
    _check_columns(source, config)
    found = read_general(source, config.stratify)
    kept = _without_caps(found.rows, {_prompt(pair) for pair in test}, config)
    own_stay = capped([_prompt(p) for p in train], [p.pair_id for p in train], config.max_per_prompt, config.seed)
    own_kept = [pair for pair, stays in zip(train, own_stay, strict=True) if stays]
    share = shares(len(own_kept), len(kept.rows), ratio, config.total)
    if not share.general:
        raise PairgenError(f"--with {general} holds no pair that could be taken: see the flaws {_told(found.flaws)}.")
    taken_own = _sampled(own_kept, share.own, config.seed)
    taken = chosen(kept.rows, share.general, config.seed)
    mixed_in = list(general_pairs(source, taken, config.stratify))
    drops = _drops(train, own_kept, taken_own)
    together = sorted([*taken_own, *mixed_in], key=lambda pair: pair.pair_id)
    stage = count_stage("mix", "own train pairs", len(train), len(taken_own), drops)
    made = _manifest(manifest, source, config, found, kept, share, together, test, taken, pairs)
    made = dataclasses.replace(made, funnel=(*manifest.funnel, stage))
    pairset.write_pairset(out, together, test, [*pairset.read_drops(pairs), *drops], made, overwrite=overwrite)
    return made


def read_general(source: Source, stratify: str) -> Read:
    """Go through all rows once: what each asks and says as hashes, and what is wrong with the unsound ones."""
    rows: list[Row] = []
    counts: Counter[str] = Counter()
    examples: dict[str, tuple[int, str]] = {}
    bar = progress(None if source.rows < 0 else source.rows, f"reading {source.name}", "row")
    with bar:
        place = -1
        for place, raw in enumerate(source.read(_columns(stratify))):
            bar.update()
            try:
                pair = convert(raw)
            except Flawed as error:
                counts[error.flaw] += 1
                examples.setdefault(error.flaw, (place, repr(dict(raw))[:LONGEST_EXAMPLE]))
                continue
            stratum = _text(raw.get(stratify)) if stratify else ""
            rows.append(Row(place, stratum, content_id(pair.prompt), content_id(*pair)))
    flaws = tuple(Flaw(name, counts[name], *examples[name]) for name in FLAWS if counts[name])
    return Read(rows, flaws, place + 1)


class Kept(NamedTuple):
    """The sound rows that may be taken, and how many repeat another, are over the cap, or are asked in test."""

    rows: list[Row]
    repeated: int
    over_cap: int
    in_test: int


def _without_caps(rows: Sequence[Row], in_test: set[str], config: MixConfig) -> Kept:
    once = list({row.pair: row for row in reversed(rows)}.values())[::-1]
    apart = [row for row in once if row.prompt not in in_test]
    stay = capped([row.prompt for row in apart], [row.pair for row in apart], config.max_per_prompt, config.seed)
    kept = [row for row, stays in zip(apart, stay, strict=True) if stays]
    return Kept(kept, len(rows) - len(once), len(apart) - len(kept), len(once) - len(apart))


def general_pairs(source: Source, taken: Sequence[Row], stratify: str) -> Iterator[Pair]:
    """Go through the rows again for those that were chosen, each as a pair of the train side."""
    wanted = {row.place: row for row in taken}
    last = max(wanted)
    for place, raw in enumerate(source.read(_columns(stratify))):
        if place in wanted:
            yield _pair(convert(raw), wanted[place], raw, source, stratify)
        if place == last:
            return


def _pair(said: General, row: Row, raw: Mapping[str, Any], source: Source, stratify: str) -> Pair:
    return Pair(
        pair_id=content_id("general", *said), prompt=said.prompt, chosen=said.chosen, rejected=said.rejected,
        strategy=GENERAL, detail=source.name, game=GENERAL, experiment=_text(raw.get(stratify or SOURCE)),
        task_id=row.place, sample=0, episode_id="", move_id="", move_index=0, player="", role="", model="", outcome="",
        main_score=None, chosen_verdict=NOT_VERIFIED, chosen_reason="", rejected_verdict=NOT_VERIFIED,
        rejected_reason="", instance_hash="", split="train",
    )  # fmt: skip


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _columns(stratify: str) -> frozenset[str]:
    return frozenset({*SIDES, SOURCE, *({stratify} if stratify else ())})


def _check_columns(source: Source, config: MixConfig) -> None:
    missing = [side for side in SIDES[1:] if side not in source.columns]
    if missing:
        raise PairgenError(
            f"{source.name} has no column {' and '.join(missing)} (it has {', '.join(sorted(source.columns))}): give a "
            "set with prompt, chosen and rejected."
        )
    if config.stratify and config.stratify not in source.columns:
        raise UsageProblem(
            f"--stratify {config.stratify}: {source.name} has no such column; "
            f"{did_you_mean(config.stratify, sorted(source.columns))}"
        )


def _prompt(pair: Pair) -> str:
    return content_id(pair.prompt)


def _sampled(pairs: Sequence[Pair], count: int, seed: int) -> list[Pair]:
    """So many of the own pairs, games and strategies in proportion."""
    rows = [Row(i, f"{p.game} {p.strategy}", "", p.pair_id) for i, p in enumerate(pairs)]
    return [pairs[row.place] for row in chosen(rows, count, seed)]


def _drops(train: Sequence[Pair], capped_to: Sequence[Pair], taken: Sequence[Pair]) -> list[Drop]:
    kept, stay = {id(pair) for pair in capped_to}, {id(pair) for pair in taken}
    return [
        drop_pair(pair, "mix", "total" if id(pair) in kept else "max_per_prompt")
        for pair in train
        if id(pair) not in stay
    ]


def _told(flaws: Sequence[Flaw]) -> str:
    return ", ".join(f"{flaw.count} {flaw.flaw} ({FLAWS[flaw.flaw]})" for flaw in flaws) or "of which there are none"


def _manifest(
    manifest: Manifest, source: Source, config: MixConfig, found: Read, kept: Kept, share: Shares,
    train: Sequence[Pair], test: Sequence[Pair], taken: Sequence[Row], pairs: Path,
) -> Manifest:  # fmt: skip
    together = [*train, *test]
    frame = frame_of(together)
    quality = dataclasses.replace(
        manifest.quality, shortcuts=tuple(audit(slim(frame), frame, config.seed)), tokens=None
    )
    license = config.license or source.license or "other"
    counts = Counter(row.stratum for row in taken)
    mixed = Mixed(
        pairset=pairs.resolve().name, content=manifest.content, general=source.name, revision=source.revision,
        license=license, ratio=config.ratio, stratify=config.stratify, max_per_prompt=config.max_per_prompt,
        seed=config.seed, read=found.read, flaws=found.flaws, repeated=kept.repeated, over_cap=kept.over_cap,
        in_test=kept.in_test, own=share.own, general_taken=share.general, wanted_general=share.wanted_general,
        wanted_own=share.wanted_own, before=tuple(s for s in manifest.quality.shortcuts if not s.strategy),
        strata=tuple(Stratum(name, counts[name]) for name in sorted(counts)) if config.stratify else (),
    )  # fmt: skip
    made = with_pairs(manifest, train, test)
    note = (
        f"This holds for the {share.own + len(test):,} pairs of the model's own play. The {share.general:,} general "
        "pairs were not checked for evaluation instances."
    )
    return dataclasses.replace(
        made, command=command_of(pairs.resolve().name, source, config), quality=quality, mixed=mixed,
        config=dataclasses.replace(manifest.config, license=license),
        evaluation=dataclasses.replace(manifest.evaluation, notes=(*manifest.evaluation.notes, note)),
    )  # fmt: skip


def command_of(pairs: str, source: Source, config: MixConfig) -> str:
    """The command line that makes this mixture again, with the names of folders and files alone."""
    words = ["pairgen", "mix", pairs, "--with", source.name]
    if "/" in source.name:
        words[-1] += f"@{source.revision}"
    default = MixConfig()
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value != getattr(default, field.name) or field.name in ("ratio", "seed"):
            words += ["--" + field.name.replace("_", "-"), str(value)]
    return " ".join(words)
