"""Where general preference sets come from: a file, a folder, a pair set, or the Hub. Reads rows, judges none.

A source can be read again from its beginning, in batches, so that no more of it is ever in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pipelines import pairset
from pipelines.pairfile import SUFFIXES

BATCH = 2_000
Row = Mapping[str, Any]


class Source(NamedTuple):
    """A set of rows. `revision` is a commit on the Hub, or a hash of the files; `rows` is -1 where nobody knows yet.

    `read` gives the rows of these columns, in an order that never changes; `license` is "" where it is not said.
    """

    name: str
    revision: str
    license: str
    rows: int
    columns: frozenset[str]
    read: Callable[[frozenset[str]], Iterator[Row]]


def open_source(text: str) -> Source:
    """`--with`: a file of pairs, a folder of them, a pair set, or `USER/NAME[:CONFIG[:SPLIT]][@REVISION]` on the Hub.

    Raises UsageProblem for what is none of these, PairgenError for what cannot be read.
    """
    path = Path(text)
    if path.is_dir():
        return _pair_set(path) if (path / store.MANIFEST).exists() else _files(path, _members(path))
    if path.is_file():
        return _files(path, [path])
    if text.count("/") == 1 and not text.startswith((".", "/", "~")) and path.suffix not in SUFFIXES:
        return _hub(text)
    raise UsageProblem(
        f"--with {text}: there is no such file or folder: give one, or USER/NAME for a data set on the Hub."
    )


def _pair_set(folder: Path) -> Source:
    """The train side of a pair set: its test side is for judging."""
    manifest = pairset.read_manifest(folder)
    train = folder / "full" / "train.parquet"
    if not train.is_file():
        raise PairgenError(f"{folder} holds no pairs to train on: give another --with.")
    source = _files(folder, [train])
    return source._replace(revision=manifest.content[:16], license=manifest.config.license)


def _members(folder: Path) -> list[Path]:
    """The files of a folder: of one kind, and where their names tell splits apart, those for training."""
    for suffix in reversed(SUFFIXES):
        found = sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())
        train = [path for path in found if "train" in path.relative_to(folder).as_posix()]
        if found:
            return train or found
    raise PairgenError(f"{folder} holds no file that ends in {', '.join(SUFFIXES)}: give another --with.")


def _files(place: Path, paths: list[Path]) -> Source:
    if any(path.suffix not in SUFFIXES for path in paths):
        raise UsageProblem(f"--with {place}: give files that end in {', '.join(SUFFIXES)}.")
    try:
        digest = hashlib.sha256()
        for path in paths:
            with path.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
        counts, columns = zip(*(_size(path) for path in paths), strict=True)
    except (OSError, ValueError) as error:
        raise _unreadable(str(place), error) from None

    def read(wanted: frozenset[str]) -> Iterator[Row]:
        try:
            for path in paths:
                yield from _rows(path, wanted)
        except (OSError, ValueError) as error:
            raise _unreadable(str(place), error) from None

    total = -1 if -1 in counts else sum(counts)
    return Source(place.resolve().name, digest.hexdigest()[:16], "", total, frozenset().union(*columns), read)


def _size(path: Path) -> tuple[int, frozenset[str]]:
    """The number of rows (-1: not known without reading all) and the columns of a file, by its first rows."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return file.metadata.num_rows, frozenset(file.schema_arrow.names)
    first = islice(_rows(path, frozenset()), 100)
    return -1, frozenset().union(*(row.keys() for row in first if isinstance(row, dict)))


def _rows(path: Path, wanted: frozenset[str]) -> Iterator[Row]:
    """The rows of a file; what is no object in JSON is a row without columns."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in wanted]
            for batch in file.iter_batches(BATCH, columns=columns):
                yield from batch.to_pylist()
        return
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8-sig") as lines:
            parsed = (json.loads(line) for line in lines if line.strip())
            yield from (row if isinstance(row, dict) else {} for row in parsed)
        return
    data = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), data)
    if not isinstance(data, list):
        raise ValueError("no list of rows in it")
    yield from (row if isinstance(row, dict) else {} for row in data)


def _hub(text: str) -> Source:
    name, _, revision = text.partition("@")
    repo, config, split = (*name.split(":"), "", "")[:3]
    try:
        import datasets
        import huggingface_hub

        info = huggingface_hub.HfApi().dataset_info(repo, revision=revision or None, timeout=30)
        data = datasets.load_dataset(repo, config or None, split=split or "train", revision=info.sha)
    except Exception as error:  # the client raises its own, httpx's and the system's errors
        first = (str(error).strip().splitlines() or [""])[0][:200]
        raise PairgenError(
            f"--with {text} cannot be had from the Hub ({type(error).__name__}: {first}): check its name, log in with "
            "`hf auth login`, or give a file or folder."
        ) from None
    license = (info.card_data or {}).get("license") or ""

    def read(wanted: frozenset[str]) -> Iterator[Row]:
        kept = data.select_columns([name for name in data.column_names if name in wanted])
        for batch in kept.iter(BATCH):
            for values in zip(*batch.values(), strict=True):
                yield dict(zip(batch, values, strict=True))

    named = license if isinstance(license, str) else " ".join(map(str, license))
    return Source(name, str(info.sha), named, len(data), frozenset(data.column_names), read)


def _unreadable(name: str, error: BaseException) -> PairgenError:
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return PairgenError(
        f"--with {name} cannot be read ({type(error).__name__}: {first}): mend the file, or give another."
    )
