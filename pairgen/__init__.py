"""pairgen turns a language model's own play into preference pairs. Importing this loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    import datasets
    import polars

__version__ = "0.1.0"


def load_pairs(folder: str | os.PathLike[str], config: str = "default") -> datasets.DatasetDict:
    """The pair set in a folder, by split: `default` is what a trainer reads, `full` has every field.

    Raises PairgenError when the folder holds no pair set.
    """
    import datasets

    return datasets.load_dataset("parquet", data_files=_sides(folder, config))


def load_frame(folder: str | os.PathLike[str], config: str = "full") -> polars.DataFrame:
    """The pairs in a folder as one polars frame, train before test; the column `split` of `full` tells them apart.

    Raises PairgenError when the folder holds no pair set.
    """
    import polars

    return polars.read_parquet(list(_sides(folder, config).values()), glob=False)


def _sides(folder: str | os.PathLike[str], config: str) -> dict[str, str]:
    """The file of each split that is there, by its name."""
    from pathlib import Path

    from pairgen.errors import PairgenError

    path = Path(folder)
    if not (path / config / "train.parquet").exists():
        raise PairgenError(
            f"{path} holds no pair set with the configuration {config!r}: give the --out folder of pairgen corrupt, "
            "and default or full."
        )
    files = {side: path / config / f"{side}.parquet" for side in ("train", "test")}
    return {side: str(file) for side, file in files.items() if file.exists()}
