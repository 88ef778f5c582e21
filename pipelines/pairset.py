"""Every file of a pair set, written and read: parquet with fixed features, the drops, the manifest, the card.

The set is built in a folder beside its place and moved there whole. Knows no game, no strategy and no network.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pairgen import __version__, store
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Drop, Episode, Pair, TrainRow, from_dict, hub_features, to_dict
from pipelines import card, dpo_yaml
from pipelines.fingerprint import CONFIGS, TABLES
from pipelines.manifest import Manifest, RunUsed, Versions
from pipelines.rollout_config import partner_of

DROPPED, CARD = "dropped.parquet", "README.md"
OWN = frozenset({DROPPED, CARD, dpo_yaml.NAME, "default", "full", store.MANIFEST, store.LOCK})
"""What a pair set is made of, and what a push sends of it (but for the lock); --overwrite replaces nothing else."""


def write_pairset(
    out: Path,
    train: Sequence[Pair],
    test: Sequence[Pair],
    drops: Sequence[Drop],
    manifest: Manifest,
    *,
    overwrite: bool = False,
) -> None:
    """Write the set to the folder `out`: all of it, or nothing. A side without pairs gets no file.

    Without any pair only the drops and the manifest are written. What a person wrote on the card of a set that is
    replaced stays. Raises UsageProblem when `out` is not free (see `check_out`).
    """
    out = out.resolve()
    check_out(out, overwrite=overwrite)
    old_card = read_card(out)
    with _building(out) as folder:
        for side, pairs in (("train", train), ("test", test)):
            if pairs:
                rows = [TrainRow(p.prompt, p.chosen, p.rejected) for p in pairs]
                _write_parquet(folder / "default" / f"{side}.parquet", TrainRow, rows)
                _write_parquet(folder / "full" / f"{side}.parquet", Pair, pairs)
        _write_parquet(folder / DROPPED, Drop, drops)
        if train or test:
            (folder / CARD).write_bytes(card.encoded(card.render(manifest, card.FOLDER, old_card)))
            (folder / dpo_yaml.NAME).write_text(dpo_yaml.render(manifest), encoding="utf-8")
        store.write_json(folder / store.MANIFEST, to_dict(manifest))


def check_out(out: Path, *, overwrite: bool) -> None:
    """Raise UsageProblem when a pair set cannot be written to `out`; a run is never replaced by one.

    What is left of a try that gave no pair (its drops and manifest) is replaced without `overwrite`.
    """
    if (out / store.JOURNAL).exists():
        raise UsageProblem(f"{out} is a run, which pairs never replace: use another --out.")
    overwrite = overwrite or _came_to_nothing(out)
    store.check_folder(out, resume=False, overwrite=overwrite)
    foreign = {p.name for p in out.iterdir()} - OWN if overwrite and out.is_dir() else set()
    if foreign:
        raise UsageProblem(
            f"{out} holds {', '.join(sorted(foreign))}, which pairgen did not write: move it, or use another --out."
        )


def _came_to_nothing(out: Path) -> bool:
    if not out.is_dir() or {p.name for p in out.iterdir()} - {store.LOCK} != {DROPPED, store.MANIFEST}:
        return False
    with contextlib.suppress(PairgenError):
        return read_manifest(out).pairs == 0
    return False


@contextlib.contextmanager
def _building(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place when the block ends well, and vanishes when it does not."""
    folder = out.with_name(f".{out.name}.tmp")
    with store.lock_folder(folder):
        try:
            for item in folder.iterdir():
                if item.name != store.LOCK:
                    shutil.rmtree(item) if item.is_dir() else item.unlink()
            yield folder
            (folder / store.LOCK).unlink()
            if out.exists():
                old = out.with_name(f".{out.name}.old")
                shutil.rmtree(old, ignore_errors=True)
                out.rename(old)
                try:
                    folder.rename(out)
                except OSError:
                    old.rename(out)
                    raise
                shutil.rmtree(old)
            else:
                folder.rename(out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _write_parquet(path: Path, cls: type[Any], records: Sequence[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = store.arrow_schema(cls).with_metadata({"huggingface": _hub_metadata(cls)})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, len(records), store.ROWS_PER_WRITE):
            rows = [to_dict(r) for r in records[start : start + store.ROWS_PER_WRITE]]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _hub_metadata(cls: type[Any]) -> str:
    """The Hub features as every release of datasets reads them: lists in brackets, as `List` came with 4.0."""

    def plain(feature: Any) -> Any:
        if isinstance(feature, dict) and feature.get("_type") == "List":
            return [plain(feature["feature"])]
        return {k: plain(v) for k, v in feature.items()} if isinstance(feature, dict) else feature

    features = hub_features(cls).to_dict()
    return json.dumps({"info": {"features": {name: plain(feature) for name, feature in features.items()}}})


def members(folder: Path) -> list[str]:
    """The paths of all files of a set beside its card: its tables first, its manifest last."""
    others = sorted(OWN - {CARD, store.LOCK, store.MANIFEST, *CONFIGS})
    return [name for name in (*TABLES, *others, store.MANIFEST) if (folder / name).is_file()]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a pair set. Raises PairgenError when the folder holds none, or one of another release."""
    path = folder / store.MANIFEST
    try:
        data = store.read_json(path)
        if data.get("kind") == "pairs":
            manifest: Manifest = from_dict(Manifest, data)
            return manifest
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PairgenError(
            f"{path} cannot be read ({type(error).__name__}: {error}): make the pair set again with pairgen corrupt."
        ) from None
    what = "a run: make pairs of it first" if (folder / store.JOURNAL).exists() else "no pair set: make one"
    raise PairgenError(f"{folder} is {what} with pairgen corrupt RUN --out {folder.name}-pairs.")


def read_pairs(folder: Path) -> list[Pair]:
    """All pairs of a set, train before test."""
    sides = (folder / "full" / f"{side}.parquet" for side in ("train", "test"))
    return [pair for path in sides if path.exists() for pair in store.read_table(path, Pair)]


def read_drops(folder: Path) -> list[Drop]:
    return store.read_table(folder / DROPPED, Drop)


def read_card(folder: Path) -> str:
    """The card as it stands, or nothing."""
    return card.decoded(read_card_bytes(folder))


def read_card_bytes(folder: Path) -> bytes:
    """The card as it stands, its line endings and all, or nothing."""
    path = folder / CARD
    return path.read_bytes() if path.exists() else b""


def describe_run(run: Path, episodes: int) -> RunUsed:
    """What a run says of how it was played. A model in a local folder is called by the folder's name."""
    path = run / store.CONFIG
    saved = store.read_json(path) if path.exists() else {}
    config = saved.get("config") or {}
    played = store.read_json(run / store.MANIFEST) if (run / store.MANIFEST).exists() else {}
    model, lora = _named(config.get("model")), _named(config.get("lora"))
    partner = _named(partner_of(str(config.get("partner") or "")).model)
    temperature, top_p, max_tokens = (
        -1 if config.get(name) is None else config[name] for name in ("temperature", "top_p", "max_tokens")
    )
    return RunUsed(
        run.resolve().name, str(saved.get("command") or ""), model, str(config.get("revision") or ""),
        float(temperature), float(top_p), int(max_tokens), episodes, lora, partner,
        str(played.get("clembench_commit") or ""), -1 if config.get("seed") is None else int(config["seed"]),
        tuple(config.get("chat_template_kwargs") or ()),
    )  # fmt: skip


def _named(model: object) -> str:
    """A model or adapter without the place that it has on this machine."""
    name = str(model or "")
    return Path(name).name if name.startswith(("/", ".", "~")) or (name and Path(name).exists()) else name


def versions(episodes: Iterable[Episode]) -> Versions:
    """What makes this set, and the clemcore releases that its episodes were played with."""
    import datasets
    import pyarrow

    played = {e.clemcore_version for e in episodes if e.clemcore_version}
    return Versions(
        __version__, ".".join(platform.python_version_tuple()[:2]), datasets.__version__, pyarrow.__version__,
        tuple(sorted(played)),
    )  # fmt: skip
