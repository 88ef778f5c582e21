"""How fast, and in how much memory, `pairgen mix` takes its share of a large set. Prints rows/s and peak RSS."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from pairgen.console import say

WORDS = [f"word{i}" for i in range(5_000)]
BATCH = 10_000


@click.command()
@click.argument("pairs", type=click.Path(exists=True, path_type=Path))
@click.option("--rows", default=300_000, show_default=True)
@click.option("--characters", default=2_000, show_default=True, help="Of a row, about.")
def main(pairs: Path, rows: int, characters: int) -> None:
    """Make a general set in the shape of the Tülu 3 mixture, mix PAIRS with it, and print what that took."""
    with tempfile.TemporaryDirectory() as folder:
        general = Path(folder) / "general.parquet"
        make(general, rows, characters)
        say(f"{rows} rows, {general.stat().st_size / 1e6:.0f} MB")
        command = [sys.executable, "-m", "pairgen.cli", "mix", str(pairs), "--with", str(general)]
        started = time.monotonic()
        subprocess.run([*command, "--stratify", "source", "--out", str(Path(folder) / "mixed")], check=True)
        seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{rows} rows: {seconds:.1f} s, {rows / seconds:.0f} rows/s, peak memory {peak:.0f} MiB")


def make(path: Path, rows: int, characters: int) -> None:
    chance, writer = random.Random(0), None
    for start in range(0, rows, BATCH):
        batch = [row(i, characters, chance) for i in range(start, min(rows, start + BATCH))]
        table = pa.Table.from_pylist(batch)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def row(number: int, characters: int, chance: random.Random) -> dict[str, Any]:
    prompt, chosen, rejected = (" ".join(chance.choices(WORDS, k=characters // 24)) for _ in range(3))
    asks = {"role": "user", "content": prompt}
    sides = {"chosen": chosen, "rejected": rejected}
    talks = {side: [asks, {"role": "assistant", "content": said}] for side, said in sides.items()}
    return {"id": f"row-{number}", "source": f"source{number % 17}", "prompt": prompt, **talks}


if __name__ == "__main__":
    main()
