"""What a push of a pair set sends: its files, hashed, and the card; or a copy of them in a folder. Knows no network."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pipelines import card, pairset
from pipelines.fingerprint import CONFIGS, SIDES, rows_by_id, told_alike
from pipelines.manifest import Manifest, content_of_rows

PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"


class Published(NamedTuple):
    """One file as it is sent: from `source` on disk, or the `content` of one that is written for the push."""

    path: str
    size: int
    sha256: str
    source: Path | None = None
    content: bytes = b""


class Plan(NamedTuple):
    """These files in one commit to this data set; visible to its owner alone unless `public`."""

    repo: str
    public: bool
    files: tuple[Published, ...]
    pairs: int


def check_repo(repo: str) -> None:
    """Raise UsageProblem for what cannot be the name of a data set on the Hub."""
    if "/" not in repo:
        raise UsageProblem(f"{repo} is no full name of a data set: write it as USER/{repo or 'NAME'}.")
    if not re.fullmatch(f"{PART}/{PART}", repo) or "--" in repo or ".." in repo:
        raise UsageProblem(
            f"{repo} is no name that the Hub takes: USER/NAME in letters, digits, '-', '_' and '.', "
            "without '--' or '..', and with neither '-' nor '.' at an end."
        )


def plan_push(folder: Path, repo: str, *, public: bool) -> Plan:
    """Everything that a push of this pair set to a new data set sends.

    Raises UsageProblem for a name that the Hub does not take, PairgenError for a folder that is no whole pair set with
    pairs.
    """
    check_repo(repo)
    manifest = pairset.read_manifest(folder)
    if not manifest.pairs:
        raise PairgenError(f"{folder} holds no pairs: see its manifest.json for the reasons, and make it again.")
    names = pairset.members(folder)
    for name in (*_tables(manifest), pairset.DROPPED):
        if name not in names:
            raise PairgenError(f"{folder / name} cannot be read: make the set again with pairgen corrupt.")
    if content_of_rows(rows_by_id(folder)) != manifest.content:
        raise PairgenError(f"{folder}/full is not as pairgen corrupt wrote it: make the set again before it is pushed.")
    for side in SIDES:
        if getattr(manifest, side) and not told_alike(folder, side):
            raise PairgenError(
                f"{folder}/default/{side}.parquet is not as pairgen wrote it: make the set again before it is pushed."
            )
    text = _card(manifest, repo, pairset.read_card_bytes(folder))
    return Plan(repo, public, (text, *(_file(folder, name) for name in names)), manifest.pairs)


def with_card(plan: Plan, folder: Path, on_hub: bytes) -> Plan:
    """The same plan, its card merged into the one that the data set has on the Hub."""
    text = _card(pairset.read_manifest(folder), plan.repo, on_hub)
    return plan._replace(files=(text, *plan.files[1:]))


def _card(manifest: Manifest, repo: str, existing: bytes) -> Published:
    text = card.encoded(card.render(manifest, repo, card.decoded(existing)))
    return Published(pairset.CARD, len(text), hashlib.sha256(text).hexdigest(), None, text)


def _tables(manifest: Manifest) -> list[str]:
    sides = [side for side in SIDES if getattr(manifest, side)]
    return [f"{config}/{side}.parquet" for config in CONFIGS for side in sides]


def _file(folder: Path, name: str) -> Published:
    digest = hashlib.sha256()
    with (folder / name).open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
        return Published(name, file.tell(), digest.hexdigest(), folder / name)


def write_copy(plan: Plan, out: Path, *, overwrite: bool) -> None:
    """Write the files of the plan to the folder `out`, which then loads as the data set would."""
    pairset.check_out(out, overwrite=overwrite)
    store.claim_folder(out, resume=False, overwrite=overwrite)
    for file in plan.files:
        store.write_atomic(out / file.path, lambda path, file=file: _write(file, path))  # type: ignore[misc]


def _write(file: Published, path: Path) -> None:
    if file.source:
        shutil.copyfile(file.source, path)
    else:
        path.write_bytes(file.content)


def as_summary(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    return {
        "repo": plan.repo,
        "visibility": "public" if plan.public else "private",
        "pairs": plan.pairs,
        "files": [{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in plan.files],
    }
