"""pairgen turns a language model's own play into preference pairs. Importing this loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import datasets
    import polars

__version__ = "0.1.0"


def load_pairs(folder: str | os.PathLike[str], config: str = "default") -> datasets.DatasetDict:
    """The pair set in a folder, by split: `default` is what a trainer reads, `full` has every field.

    Raises PairgenError when the folder holds no pair set.
    """
    import datasets

    files = {side: str(path) for side, path in _tables(folder, config).items()}
    return datasets.load_dataset("parquet", data_files=files)


def load_frame(folder: str | os.PathLike[str], config: str = "full") -> polars.DataFrame:
    """The pairs of both splits as one polars frame, a row a pair; with `full`, the column `split` tells them apart.

    Raises PairgenError when the folder holds no pair set.
    """
    import polars

    return polars.concat([polars.read_parquet(path) for path in _tables(folder, config).values()])


def _tables(folder: str | os.PathLike[str], config: str) -> dict[str, Path]:
    from pathlib import Path

    from pairgen.errors import PairgenError

    path = Path(folder)
    if not (path / config / "train.parquet").exists():
        raise PairgenError(
            f"{path} holds no pair set with the configuration {config!r}: give the --out folder of pairgen corrupt, "
            "and default or full."
        )
    files = {side: path / config / f"{side}.parquet" for side in ("train", "test")}
    return {side: file for side, file in files.items() if file.exists()}
