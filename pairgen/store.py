"""Every file of a run: the journal, the tables derived from it, the manifest, and the lock. Knows no game or engine.

A run folder holds `run.json` (the configuration, first), `episodes.jsonl` (the journal: one whole episode a line,
synced), `episodes.parquet` and `moves.parquet` (derived), `manifest.json` (last). Whole files go to a temporary name
and are then renamed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import (
    READABLE,
    SCHEMA_VERSION,
    Episode,
    EpisodeKey,
    EpisodeRow,
    Message,
    Messages,
    MoveRow,
    episode_row,
    from_dict,
    move_rows,
    polars_schema,
    to_dict,
)

JOURNAL, CONFIG, MANIFEST, LOCK = "episodes.jsonl", "run.json", "manifest.json", ".lock"
ROWS_PER_WRITE = 2_000

T = TypeVar("T")


def write_atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file under a temporary name beside `path`, then rename it: readers see all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    write_atomic(path, lambda p: p.write_text(text, encoding="utf-8", errors="surrogatepass"))


def read_json(path: Path) -> Any:
    """What a JSON file holds; raises FileNotFoundError, and PairgenError where what is there cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise PairgenError(
            f"{path} cannot be read ({type(error).__name__}): it is damaged; make the set again with pairgen corrupt, "
            "or the run with pairgen rollout or import."
        ) from None


def check_folder(path: Path, *, resume: bool, overwrite: bool) -> None:
    """Raise UsageProblem when `path` must not be written to; changes nothing.

    That is when it holds something and neither `resume` nor `overwrite` was said, and when `overwrite` meets a folder
    that pairgen did not make, so that a mistyped path costs nothing.
    """
    place = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    if not os.access(place, os.W_OK):
        raise UsageProblem(f"{path} cannot be written to ({place} is read-only for this user): use another --out.")
    if path.exists() and not path.is_dir():
        raise UsageProblem(f"{path} is a file: give the path of a folder that can be made.")
    if not path.is_dir() or all(p.name == LOCK for p in path.iterdir()):
        return
    if not (resume or overwrite):
        raise UsageProblem(
            f"{path} is not empty: say --overwrite to replace what pairgen wrote there, "
            "--resume (rollout) to go on with it, or another --out."
        )
    if overwrite and not ((path / CONFIG).exists() or (path / MANIFEST).exists()):
        raise UsageProblem(f"{path} was not written by pairgen, so --overwrite leaves it alone: use another --out.")


def claim_folder(path: Path, *, resume: bool, overwrite: bool) -> None:
    """Make `path` ready to be written to: `check_folder`, then make it, or empty it when `overwrite` was said."""
    check_folder(path, resume=resume, overwrite=overwrite)
    if path.is_dir() and overwrite:
        for item in path.iterdir():
            if item.name != LOCK:
                shutil.rmtree(item) if item.is_dir() and not item.is_symlink() else item.unlink()
    path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Hold the folder for this process; raises UsageProblem while another one holds it. A killed holder frees it."""
    import fcntl

    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK).open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageProblem(
                f"another pairgen process is writing to {path}: wait for it, stop it, or use another --out."
            ) from None
        yield


class Journal:
    """Appends whole episodes, each synced to disk before `append` returns; a torn last line is cut off on opening."""

    def __init__(self, run: Path):
        self._path = run / JOURNAL
        _cut_torn_line(self._path)
        self._file: IO[bytes] = self._path.open("ab")

    def append(self, *episodes: Episode) -> None:
        for episode in episodes:
            line = json.dumps(_pack(episode), ensure_ascii=False, separators=(",", ":"))
            self._file.write(line.encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _cut_torn_line(path: Path) -> None:
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb+") as handle:
        size = handle.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - 65_536)
            handle.seek(start)
            newline = handle.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            handle.truncate(end)


def read_journal(run: Path) -> Iterator[Episode]:
    """The episodes of a run in the order they ended, the latest of each key last. A torn last line is left out.

    Raises PairgenError for a line in the middle that cannot be read, and for a journal of another schema version.
    """
    return (episode for _, episode in _journal_lines(run))


def check_run(run: Path) -> None:
    """Raise UsageProblem where there is nothing at `run`, and PairgenError where what is there is no run."""
    if not run.exists():
        raise UsageProblem(f"{run} does not exist: give the folder of a run (rollout --out, import --out).")
    if not (run / JOURNAL).exists():
        raise PairgenError(
            f"{run} is not a run: it holds no {JOURNAL}; make one with pairgen rollout or pairgen import."
        )


def _journal_lines(run: Path) -> Iterator[tuple[int, Episode]]:
    """Each readable line as the byte at which it begins and the episode it holds."""
    check_run(run)
    path, place = run / JOURNAL, 0
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            try:
                data = json.loads(line.decode("utf-8", "surrogatepass"))
                version = data["schema"]
                episode = _unpack(data) if version in READABLE else None
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise PairgenError(
                    f"{path} line {number} cannot be read ({type(error).__name__}: {error}): {_mend(run)}."
                ) from None
            if episode is None:
                raise PairgenError(
                    f"{path} has schema version {version}, this pairgen reads {SCHEMA_VERSION} and older: "
                    "use the pairgen that wrote it, or play again."
                )
            yield place, episode
            place += len(line)


def _mend(run: Path) -> str:
    """What brings back an episode whose line is damaged: it is played, or imported, again."""
    saved = read_json(run / CONFIG) if (run / CONFIG).exists() else {}
    if saved.get("command") == "import":
        return "import the results again with --overwrite"
    return "remove that line, and play that episode again with pairgen rollout --resume"


def read_episodes(run: Path) -> list[Episode]:
    """The last word on each episode of a run, in a fixed order (by game, experiment, task, sample)."""
    return list(stream_episodes(run))


def stream_episodes(run: Path) -> Iterator[Episode]:
    """`read_episodes`, one at a time: memory holds where each line begins, not what it says."""
    places: dict[EpisodeKey, int] = {}
    for place, episode in _journal_lines(run):
        places[episode.key] = place
    with (run / JOURNAL).open("rb") as handle:
        for key in sorted(places):
            handle.seek(places[key])
            yield _unpack(json.loads(handle.readline().decode("utf-8", "surrogatepass")))


def write_tables(run: Path, episodes: Iterable[Episode]) -> None:
    """Derive `episodes.parquet` and `moves.parquet`; memory holds some episodes at a time, never all."""
    with (
        TableWriter(run / "episodes.parquet", EpisodeRow) as table,
        TableWriter(run / "moves.parquet", MoveRow) as moves,
    ):
        for episode in episodes:
            table.write(episode_row(episode))
            for row in move_rows(episode):
                moves.write(row)


class TableWriter:
    """Writes records of one class to parquet, a row group at a time; the file appears when the block ends well."""

    def __init__(self, path: Path, cls: type[Any]):
        import pyarrow.parquet as pq

        self._path, self._schema = path, arrow_schema(cls)
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._rows: list[Any] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(self._temporary, self._schema, compression="zstd")

    def write(self, record: Any) -> None:
        self._rows.append(to_dict(record))
        if len(self._rows) >= ROWS_PER_WRITE:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows.clear()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                if self._rows:
                    self._flush()
                self._writer.close()
                self._temporary.replace(self._path)
            else:
                self._writer.close()
        finally:
            self._temporary.unlink(missing_ok=True)


def arrow_schema(cls: type[Any]) -> Any:
    """The arrow schema of a record class, as the Hub features have it (plain `string`, never `large_string`)."""
    return _arrow_fields(polars_schema(cls))


def _arrow_fields(schema: dict[str, Any]) -> Any:
    import polars as pl
    import pyarrow as pa

    plain = {pl.String: pa.string(), pl.Int64: pa.int64(), pl.Float64: pa.float64(), pl.Boolean: pa.bool_()}

    def kind(dtype: Any) -> Any:
        if isinstance(dtype, pl.Struct):
            return pa.struct([(f.name, kind(f.dtype)) for f in dtype.fields])
        if isinstance(dtype, pl.List):
            return pa.list_(kind(dtype.inner))
        return plain[type(dtype)]

    return pa.schema([(name, kind(dtype)) for name, dtype in schema.items()])


def read_table(path: Path, cls: type[T]) -> list[T]:
    """The records of a table that `TableWriter` wrote; raises PairgenError where it cannot be read."""
    return list(stream_table(path, cls))


def stream_table(path: Path, cls: type[T]) -> Iterator[T]:
    """`read_table`, some rows at a time: memory never holds all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(ROWS_PER_WRITE):
                for row in batch.to_pylist():
                    yield from_dict(cls, row)
    except (pa.ArrowInvalid, OSError, KeyError, TypeError) as error:
        raise PairgenError(
            f"{path} cannot be read ({type(error).__name__}): it is damaged or of another version; make it again."
        ) from None


def is_torn(run: Path) -> bool:
    """Whether a crash left half a line at the end of the journal: an episode that was not finished."""
    path = run / JOURNAL
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as handle:
        handle.seek(-1, os.SEEK_END)
        return handle.read() != b"\n"


def _pack(episode: Episode) -> dict[str, Any]:
    """The journal's form: a prompt that goes on from an earlier move of the same player is kept as what it adds.

    `after` is the index in `moves` of that earlier move (-1: none), so that long games take linear space.
    """
    data: dict[str, Any] = {"schema": SCHEMA_VERSION, **to_dict(episode)}
    seen: dict[str, int] = {}
    for position, move in enumerate(episode.moves):
        after = -1
        base: Messages = ()
        if move.player in seen:
            earlier = episode.moves[seen[move.player]]
            history = _history(earlier.prompt, earlier.reply)
            if move.prompt[: len(history)] == history:
                after, base = seen[move.player], history
        data["moves"][position]["after"] = after
        data["moves"][position]["prompt"] = data["moves"][position]["prompt"][len(base) :]
        seen[move.player] = position
    return data


def _unpack(data: dict[str, Any]) -> Episode:
    prompts: list[Messages] = []
    for move in data["moves"]:
        added = tuple(from_dict(Message, m) for m in move["prompt"])
        after = move["after"]
        prompts.append((*_history(prompts[after], data["moves"][after]["reply"]), *added) if after >= 0 else added)
        move["prompt"] = []
    episode: Episode = from_dict(Episode, data)
    moves = tuple(dataclasses.replace(m, prompt=p) for m, p in zip(episode.moves, prompts, strict=True))
    return dataclasses.replace(episode, moves=moves)


def _history(prompt: Messages, reply: str) -> Messages:
    return (*prompt, Message("assistant", reply))
