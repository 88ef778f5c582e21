"""What identifies the rows of a pair set: counts, columns and a hash, read a batch at a time. Knows no network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.errors import PairgenError
from pairgen.records import Pair, TrainRow, fields_of

CONFIGS: Mapping[str, type[Any]] = {"default": TrainRow, "full": Pair}
SIDES = ("train", "test")
TABLES = tuple(f"{config}/{side}.parquet" for config in CONFIGS for side in SIDES)
"""Every table that a pair set may have."""
BATCH = 1_000


class Table(NamedTuple):
    """One side of one configuration: how many rows, the columns with their types as text, and a hash of the rows."""

    rows: int
    columns: tuple[str, ...]
    sha256: str


def of_rows(batches: Iterable[Iterable[Mapping[str, Any]]], schema: Any) -> Table:
    """The fingerprint of rows in their order; `schema` is their arrow schema."""
    digest, count = hashlib.sha256(), 0
    for batch in batches:
        for row in batch:
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
            count += 1
    return Table(count, columns_of(schema), digest.hexdigest())


def columns_of(schema: Any) -> tuple[str, ...]:
    """Names and types; how parquet calls the element of a list does not matter."""
    return tuple(f"{field.name}: {str(field.type).replace('element: ', 'item: ')}" for field in schema)


def of_file(path: Path) -> Table:
    """The fingerprint of a parquet file. Raises PairgenError where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return of_rows((b.to_pylist() for b in file.iter_batches(BATCH)), file.schema_arrow)
    except (pa.ArrowInvalid, OSError) as error:
        raise PairgenError(
            f"{path} cannot be read ({type(error).__name__}): make the set again with pairgen corrupt."
        ) from None


def of_folder(folder: Path) -> dict[str, Table]:
    """The fingerprint of every table of a pair set that is there, by its path."""
    return {name: of_file(folder / name) for name in TABLES if (folder / name).exists()}


def told_alike(folder: Path, side: str) -> bool:
    """Whether `default` and `full` hold the same prompts and replies on this side, in the same order."""
    import pyarrow.parquet as pq

    names, hashes = list(hub_columns(TrainRow)), set()
    for config in CONFIGS:
        with pq.ParquetFile(folder / config / f"{side}.parquet") as file:
            batches = (batch.to_pylist() for batch in file.iter_batches(BATCH, columns=names))
            hashes.add(of_rows(batches, file.schema_arrow).sha256)
    return len(hashes) == 1


def hub_columns(cls: type[Any]) -> tuple[str, ...]:
    return tuple(name for name, _ in fields_of(cls))


def rows_by_id(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of `full` in the order of their ids, both sides together; memory holds them as arrow has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [folder / "full" / f"{side}.parquet" for side in SIDES]
    try:
        table = pa.concat_tables([pq.read_table(path) for path in paths if path.exists()])
        order = table.column("pair_id").to_numpy(zero_copy_only=False).argsort(kind="stable")
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise PairgenError(
            f"{folder}/full cannot be read ({type(error).__name__}): make the set again with pairgen corrupt."
        ) from None
    for start in range(0, len(order), BATCH):
        yield from table.take(order[start : start + BATCH]).to_pylist()


def differences(here: Mapping[str, Table], there: Mapping[str, Table]) -> list[str]:
    """What differs, in words: a table that is missing or too many, other columns, other counts, other contents."""
    found = []
    for name in sorted({*here, *there}):
        ours, theirs = here.get(name), there.get(name)
        if ours is None or theirs is None:
            found.append(f"{name} is {'missing' if theirs is None else 'one too many'}")
        elif ours.columns != theirs.columns:
            odd = sorted(set(ours.columns) ^ set(theirs.columns)) or ["their order"]
            found.append(f"{name} has other columns ({', '.join(odd)})")
        elif ours.rows != theirs.rows:
            found.append(f"{name} has {theirs.rows:,} rows, not {ours.rows:,}")
        elif ours.sha256 != theirs.sha256:
            found.append(f"{name} has other contents in its {ours.rows:,} rows")
    return found
