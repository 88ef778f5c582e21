"""pairgen turns a language model's own play into preference pairs. Importing this loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    import datasets

__version__ = "0.1.0"


def load_pairs(folder: str | os.PathLike[str], config: str = "default") -> datasets.DatasetDict:
    """The pair set in a folder, by split: `default` is what a trainer reads, `full` has every field.

    Raises PairgenError when the folder holds no pair set.
    """
    from pathlib import Path

    import datasets

    from pairgen.errors import PairgenError

    path = Path(folder)
    if not (path / config / "train.parquet").exists():
        raise PairgenError(
            f"{path} holds no pair set with the configuration {config!r}: give the --out folder of pairgen corrupt, "
            "and default or full."
        )
    files = {side: str(path / config / f"{side}.parquet") for side in ("train", "test")}
    there = {side: file for side, file in files.items() if Path(file).exists()}
    return datasets.load_dataset("parquet", data_files=there)
