"""The pairs of a training: of a pair set's folder, a published pair file, or a data set of the Hub, flaws named."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Pair, to_dict
from pipelines import pairfile, pairset
from pipelines.adopt import adopt
from pipelines.funnel import meaning
from pipelines.manifest import content_of
from pipelines.quality_text import quality_lines, string_lines

READ_BY_TRL = frozenset(
    {
        "tools", "chat_template_kwargs", "image", "images", "messages", "completion", "ref_chosen_logps",
        "ref_rejected_logps",
    }
)  # fmt: skip
"""Columns that TRL would read beside prompt, chosen and rejected, and pairgen does not hand over."""


class Loaded(NamedTuple):
    """Pairs on both sides of the split, and what is to be known of them.

    `unfit` counts rows that could not even be read as pairs that teach. `models` is what said the chosen sides, and
    `template` what its chat template was given (KEY=VALUE), as far as the set says. `lines` names flaws for a person.
    """

    name: str
    content: str
    train: list[Pair]
    test: list[Pair]
    unfit: Counter[str]
    models: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def load_pairs(source: str) -> Loaded:
    """Read pairs from a folder, a file or the Hub. Raises UsageProblem and PairgenError with the fix."""
    path = Path(source).expanduser()
    if path.is_dir():
        return _from_set(path) if (path / store.MANIFEST).exists() else _from_dataset(str(path), path.resolve().name)
    if path.is_file():
        return _from_file(path)
    if path.suffix in pairfile.SUFFIXES or source.startswith(("/", ".", "~")) or source.count("/") != 1:
        raise UsageProblem(
            f"{source} is not there: give the folder of a pair set, a pair file ({', '.join(pairfile.SUFFIXES)}), or "
            "the name of a data set on the Hub, such as owner/pairs."
        )
    return _from_dataset(source, source)


def _from_set(folder: Path) -> Loaded:
    manifest = pairset.read_manifest(folder)
    pairs = pairset.read_pairs(folder)
    train, test = ([p for p in pairs if p.split == side] for side in ("train", "test"))
    templates = {run.chat_template_kwargs for run in manifest.runs}
    template = templates.pop() if len(templates) == 1 else ()
    return Loaded(
        folder.resolve().name, manifest.content, train, test, Counter(),
        tuple(r.model for r in manifest.runs if r.model), template, tuple(quality_lines(manifest.quality)),
    )  # fmt: skip


def _from_file(path: Path) -> Loaded:
    """A file as `pairgen import` takes it: split by instance; what repeats in it stays, and is named."""
    with tempfile.TemporaryDirectory(prefix="pairgen-") as work:
        made, repeats = adopt(path, Path(work) / "pairs")
        pairs = pairset.read_pairs(Path(work) / "pairs")
    lines = [f"of {made.funnel[0].entered} pairs in {path.name}:"]
    lines += [f"  {r.count} {r.reason} ({meaning(r.reason)})" for r in repeats]
    unfit = Counter({r.reason: r.count for r in made.funnel[0].dropped})
    told = [*lines, *quality_lines(made.quality), *string_lines(made.quality)]
    train, test = ([p for p in pairs if p.split == side] for side in ("train", "test"))
    return Loaded(
        path.name, made.content, train, test, unfit, tuple(filter(None, made.models)), lines=tuple(told),
        extra=pairfile.columns(path),
    )  # fmt: skip


def _from_dataset(source: str, name: str) -> Loaded:
    """A data set that `datasets` can load: its test split is kept, and made where there is none."""
    import datasets

    try:
        data = datasets.load_dataset(source)
    except Exception as error:  # what the Hub and its readers raise is open
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PairgenError(
            f"{source} cannot be loaded as a data set ({first}): check the name, log in with `hf auth login` if it is "
            "private, or give the folder of a pair set."
        ) from None
    train = data["train"] if "train" in data else next(iter(data.values()))
    with tempfile.TemporaryDirectory(prefix="pairgen-") as work:
        path = Path(work) / "train.jsonl"
        _write_lines(path, train)
        if "test" not in data:
            return _from_file(path)._replace(name=name)
        known = pairfile.read_pairs(path)
        _write_lines(path, data["test"])
        test = pairfile.read_pairs(path)
    return Loaded(name, content_of([*known, *test]), known, test, Counter(), extra=tuple(train.column_names))


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def check_columns(loaded: Loaded, *, drop: bool) -> list[str]:
    """What is said of columns beside the three; PairgenError for those that TRL would read, unless they may go."""
    known = {*pairfile.SIDES}
    read = sorted(READ_BY_TRL & set(loaded.extra))
    if read and not drop:
        raise PairgenError(
            f"{loaded.name} has the column{'s' * (len(read) > 1)} {', '.join(read)}, which TRL would read and pairgen "
            "leaves out: say --drop-unfit to train on prompt, chosen and rejected alone."
        )
    rest = sorted(set(loaded.extra) - known)
    return [f"columns left out: {', '.join(rest)}"] if rest else []


def rows_of(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """Pairs as the trainer's rows: the three columns alone."""
    return [{side: [to_dict(m) for m in getattr(pair, side)] for side in pairfile.SIDES} for pair in pairs]
