"""The folder of a training: claimed, resumed at its newest whole checkpoint, ended with a manifest and a model card.

`run.json` (the configuration, first), `checkpoints/`, `adapter/` or `model/`, `merged/`, `README.md`, `manifest.json`
(last). Of the processes of a launcher only the first writes; the others read.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pairgen import __version__, store
from pairgen.errors import UsageProblem

CHECKPOINTS, ADAPTER, MODEL, MERGED, CARD = "checkpoints", "adapter", "model", "merged", "README.md"
STATE = "trainer_state.json"
LIBRARIES = ("trl", "peft", "transformers", "accelerate", "torch")


@contextlib.contextmanager
def open_training(out: Path, command: str, *, resume: bool, overwrite: bool, writes: bool) -> Iterator[dict[str, Any]]:
    """Hold `out` for this training; gives what `run.json` says of one that is gone on with, else nothing.

    A folder that this call made and in which nothing was begun is taken away again. Raises UsageProblem.
    """
    if not writes:
        yield saved(out, command) if resume else {}
        return
    store.check_folder(out, resume=resume, overwrite=overwrite)
    made = not out.exists()
    try:
        with store.lock_folder(out):
            known = saved(out, command) if resume else {}
            store.claim_folder(out, resume=resume, overwrite=overwrite)
            yield known
    finally:
        if made and not (out / store.CONFIG).exists():
            shutil.rmtree(out, ignore_errors=True)


def saved(out: Path, command: str) -> dict[str, Any]:
    """What `run.json` says; nothing where no training was begun. Raises UsageProblem where something else was."""
    try:
        known: dict[str, Any] = store.read_json(out / store.CONFIG)
    except FileNotFoundError:
        if out.is_dir() and any(p.name != store.LOCK for p in out.iterdir()):
            raise UsageProblem(f"{out} holds no training to go on with: use another --out.") from None
        return {}
    if known.get("command") != command:
        raise UsageProblem(f"{out} was written by pairgen {known.get('command')}, not {command}: use another --out.")
    return known


def begin(out: Path, command: str, config: dict[str, Any], source: str, content: str) -> None:
    """Write `run.json`, from which on the folder can be resumed."""
    head = {"command": command, "pairgen_version": __version__}
    store.write_json(out / store.CONFIG, {**head, "config": config, "source": source, "content": content})


def check_content(known: dict[str, Any], content: str, source: str) -> None:
    """Raise UsageProblem where a training was begun on other rows."""
    if known and known.get("content") != content:
        raise UsageProblem(
            f"{source} has other rows than the training was begun with ({known.get('source')}): give the same set, "
            "or train anew with another --out."
        )


def finished(out: Path) -> dict[str, Any]:
    """The manifest of a training that came to its end, else nothing."""
    try:
        manifest: dict[str, Any] = store.read_json(out / store.MANIFEST)
    except FileNotFoundError:
        return {}
    return manifest


def newest_checkpoint(out: Path) -> Path | None:
    """The newest checkpoint that was written to its end: its state comes last."""
    found = sorted((out / CHECKPOINTS).glob("checkpoint-*"), key=lambda p: -_step(p))
    return next((path for path in found if _whole(path)), None)


def drop_torn(out: Path) -> None:
    """Remove checkpoints that a kill left half-written."""
    for path in (out / CHECKPOINTS).glob("checkpoint-*"):
        if not _whole(path):
            shutil.rmtree(path)


def _step(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _whole(path: Path) -> bool:
    try:
        return bool(json.loads((path / STATE).read_text(encoding="utf-8"))["global_step"] == _step(path))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def versions() -> dict[str, str]:
    """The versions of what trains."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"pairgen": __version__, "python": python, **{name: version(name) for name in LIBRARIES}}


def end(out: Path, manifest: dict[str, Any], card: str) -> None:
    """Write the card and, last, the manifest; what only a resumed training needs goes."""
    store.write_atomic(out / CARD, lambda p: p.write_text(card, encoding="utf-8"))
    store.write_json(out / store.MANIFEST, manifest)
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
