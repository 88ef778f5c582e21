"""What stands in the way at a data set on the Hub: files and tables that a push would mix with, or replace.

Pure: it is told what is there. The command says what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

from pairgen import store
from pipelines import pairset
from pipelines.fingerprint import CONFIGS, TABLES, columns_of

DATA = frozenset(
    {
        ".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".arrow", ".xml", ".h5", ".hdf5", ".py",
        ".gz", ".zst", ".xz", ".bz2", ".zip", ".tar", ".7z",
    }
)  # fmt: skip
"""Endings that datasets reads rows from, and the old loading scripts."""
SETTINGS = frozenset({".huggingface.yaml"})
"""Overrides what the card says of the files."""


def foreign(files: Collection[str]) -> tuple[str, ...]:
    """Files that pairgen did not write and that may pass for data; cards, licences and pictures are left alone."""
    return tuple(sorted(path for path in files if not is_own(path) and _mixes(path)))


def is_own(path: str) -> bool:
    """Whether a pair set has a file at this path."""
    return path in TABLES or path in pairset.OWN


def _mixes(path: str) -> bool:
    place = PurePosixPath(path)
    return place.suffix.lower() in DATA or path in SETTINGS or place.parts[0] in CONFIGS


def of_other_making(files: Collection[str], manifest: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What there is of a set whose manifest is not one of pairgen's, in words."""
    held = sorted({*TABLES, store.MANIFEST, pairset.DROPPED} & set(files))
    if not held or (isinstance(manifest, Mapping) and manifest.get("kind") == "pairs"):
        return ()
    return (f"{', '.join(held)} (no manifest of pairgen's says how they were made)",)


def of_other_columns(schemas: Mapping[str, Any]) -> tuple[str, ...]:
    """Tables whose columns are not those of this release, in words; `schemas` maps a path to its arrow schema."""
    found = []
    for path, schema in schemas.items():
        ours = set(columns_of(store.arrow_schema(CONFIGS[path.split("/")[0]])))
        theirs = set() if schema is None else set(columns_of(schema))
        if ours != theirs:
            odd = sorted(name.split(":")[0] for name in ours ^ theirs)
            found.append(f"{path} (other columns: {', '.join(dict.fromkeys(odd))})")
    return tuple(found)
