"""Slim rows: a pair set as names, hashes and lengths, so that a million pairs pass cleaning in bounded memory.

The shape of those stages: `slim` reads the pairs once, streaming, into one small row a pair (some 200 bytes, in
memory). Stages take slim rows and return *decisions*: which row goes, why, which one stays for it, how alike they are.
Where a stage needs words, `texts` hands out a few columns of the wanted rows in batches, a shared text once. The pairs
are a LazyFrame of `Pair` rows: a scan of parquet files, or `frame_of` a list, and every stage serves both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from pairgen.records import Drop, Pair, polars_schema, to_dict
from pipelines.funnel import drop_pair

BATCH_ROWS = 20_000
NAMES = ("game", "experiment", "task_id", "role", "strategy", "instance_hash", "sample", "move_index", "split")
DECISION = {
    "row": pl.UInt32(), "pair_id": pl.String(), "reason": pl.String(), "keeper": pl.String(), "score": pl.Float64(),
}  # fmt: skip


def frame_of(pairs: Iterable[Pair]) -> pl.LazyFrame:
    """A list of pairs as the frame that the stages read."""
    return pl.DataFrame([to_dict(pair) for pair in pairs], schema=polars_schema(Pair)).lazy()


def slim(pairs: pl.LazyFrame) -> pl.DataFrame:
    """One row a pair, in the order of `pairs`: its names, and hashes that are equal where the texts are.

    `row` is the place in `pairs`. `prompt`, `chosen` and `rejected` are hashes of all messages, `first` one of the
    first user message and what stands before it. `*_chars` are characters of a side, `turns` the messages of the
    prompt. Hashes serve to compare within one process and are never written.
    """
    return (
        pairs.with_row_index("row")
        .select(
            "row", "pair_id", *NAMES,
            *(_joined(pl.col(side)).hash().alias(side) for side in ("prompt", "chosen", "rejected")),
            first_text().hash().alias("first"),
            *(said(side).str.len_chars().alias(f"{side}_chars") for side in ("chosen", "rejected")),
            pl.col("prompt").list.len().alias("turns"),
        )
        .collect(engine="streaming")
        .sort("row")
    )  # fmt: skip


def said(side: str) -> pl.Expr:
    """The text of a side: its messages, a line break between them."""
    return pl.col(side).list.eval(pl.element().struct.field("content")).list.join("\n").fill_null("")


def first_text() -> pl.Expr:
    """What names the instance: the text of the first user message and of what stands before it."""
    roles = pl.col("prompt").list.eval(pl.element().struct.field("role") == "user")
    upto = roles.list.arg_max().fill_null(0) + 1
    return pl.col("prompt").list.head(upto).list.eval(pl.element().struct.field("content")).list.join("\n")


def later_text() -> pl.Expr:
    """The play so far: everything after the first user message, with who said it."""
    roles = pl.col("prompt").list.eval(pl.element().struct.field("role") == "user")
    return _joined(pl.col("prompt").list.slice(roles.list.arg_max().fill_null(0) + 1))


def texts(
    pairs: pl.LazyFrame, rows: pl.Series, columns: Sequence[str | pl.Expr], batch: int = BATCH_ROWS
) -> Iterator[pl.DataFrame]:
    """The columns of these rows of `pairs` (ascending), with `row`, in batches that are read one at a time."""
    wanted = rows.unique().sort().cast(pl.UInt32).to_frame("row")
    for start in wanted.select((pl.col("row") // batch).unique().sort() * batch).to_series():
        here = wanted.filter(pl.col("row").is_between(start, start + batch - 1))
        some = pairs.slice(start, batch).with_row_index("row", start)
        yield some.join(here.lazy(), on="row", how="semi", maintain_order="left").select("row", *columns).collect()


def once(rows: pl.DataFrame, key: str | Sequence[str]) -> pl.DataFrame:
    """One row for each value of `key`, the first: where a text that many pairs share is looked at once."""
    return rows.unique(key, keep="first", maintain_order=True)


def decisions(rows: pl.DataFrame | None = None, reason: str = "") -> pl.DataFrame:
    """Rows with `keeper` and `score` as decisions; without rows, none."""
    if rows is None:
        return pl.DataFrame(schema=DECISION)
    return rows.with_columns(reason=pl.lit(reason)).select(pl.col(n).cast(t) for n, t in DECISION.items())


def without(rows: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """The rows that no decision takes out."""
    return rows.join(decided, on="row", how="anti", maintain_order="left")


def parted(pairs: Sequence[Pair], decided: pl.DataFrame, stage: str) -> tuple[list[Pair], list[Drop]]:
    """A list of pairs by decisions on its rows: those that stay, and the records of those that go."""
    gone = set(decided["row"].to_list())
    kept = [pair for row, pair in enumerate(pairs) if row not in gone]
    return kept, dropped(pairs, decided, stage)


def dropped(pairs: Sequence[Pair], decided: pl.DataFrame, stage: str) -> list[Drop]:
    """The records of the pairs of a list that decisions take out, in the order of the decisions."""
    return [
        drop_pair(pairs[d["row"]], stage, d["reason"], kept_id=d["keeper"] or "", score=d["score"])
        for d in decided.iter_rows(named=True)
    ]


def _joined(messages: pl.Expr) -> pl.Expr:
    """Messages as one text that differs where any role or content does."""
    one = pl.concat_str(pl.element().struct.field("role"), pl.element().struct.field("content"), separator="\x1f")
    return messages.list.eval(one).list.join("\x1e")
