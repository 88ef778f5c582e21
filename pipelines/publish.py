"""Publishing a pair set: what would be sent, a copy of it in a folder, or one commit to the Hub. Makes no pairs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pipelines import card, pairset
from pipelines.manifest import content_of

PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"


class Published(NamedTuple):
    """One file as it is sent."""

    path: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class Plan(NamedTuple):
    """What a push does: these files in one commit to this data set; visible to its owner alone unless `public`."""

    repo: str
    public: bool
    files: tuple[Published, ...]
    pairs: int


class Receipt(NamedTuple):
    """What a push did, as the Hub says it."""

    url: str
    commit: str
    private: bool


def check_repo(repo: str) -> None:
    """Raise UsageProblem for what cannot be the name of a data set on the Hub."""
    if "/" not in repo:
        raise UsageProblem(f"{repo} is no full name of a data set: write it as USER/{repo or 'NAME'}.")
    if not re.fullmatch(f"{PART}/{PART}", repo) or "--" in repo or ".." in repo:
        raise UsageProblem(
            f"{repo} is no name that the Hub takes: USER/NAME in letters, digits, '-', '_' and '.', "
            "without '--' or '..', and with neither '-' nor '.' at an end."
        )


def plan_push(folder: Path, repo: str, *, public: bool, hub_card: str | None = None) -> Plan:
    """Everything that a push of this pair set sends. `hub_card` is the card that the data set has on the Hub already.

    Raises UsageProblem for a name that the Hub does not take, PairgenError for a folder that is no pair set with pairs.
    """
    check_repo(repo)
    manifest = pairset.read_manifest(folder)
    if not manifest.pairs:
        raise PairgenError(f"{folder} holds no pairs: see its manifest.json for the reasons, and make it again.")
    sides = [side for side, rows in (("train", manifest.train), ("test", manifest.test)) if rows]
    names = [f"{config}/{side}.parquet" for config in ("default", "full") for side in sides]
    text = card.render(manifest, repo, pairset.read_card(folder) if hub_card is None else hub_card)
    files = [_file(folder, name) for name in (*names, pairset.DROPPED, store.MANIFEST)]
    if content_of(pairset.read_pairs(folder)) != manifest.content:
        raise PairgenError(f"{folder}/full is not as pairgen corrupt wrote it: make the set again before it is pushed.")
    return Plan(repo, public, (Published(pairset.CARD, text.encode()), *files), manifest.pairs)


def _file(folder: Path, name: str) -> Published:
    try:
        return Published(name, (folder / name).read_bytes())
    except OSError as error:
        raise PairgenError(
            f"{folder / name} cannot be read ({type(error).__name__}): make the set again with pairgen corrupt."
        ) from None


def write_copy(plan: Plan, out: Path, *, overwrite: bool) -> None:
    """Write the files of the plan to the folder `out`, which then loads as the data set would."""
    pairset.check_out(out, overwrite=overwrite)
    store.claim_folder(out, resume=False, overwrite=overwrite)
    for file in plan.files:
        store.write_atomic(out / file.path, lambda path, content=file.content: path.write_bytes(content))  # type: ignore[misc]


def push(folder: Path, repo: str, *, public: bool) -> tuple[Plan, Receipt]:
    """Send the pair set to the Hub in one commit, and read back what became of it.

    Files that an earlier push left in `default/` and `full/` go in the same commit. The card's text around the marked
    block stays as it is on the Hub. Raises UsageProblem when the data set is public and `public` was not said,
    PairgenError when the Hub does not take it.
    """
    import huggingface_hub
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    plan_push(folder, repo, public=public)
    api = huggingface_hub.HfApi()
    try:
        api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True)
        info = api.dataset_info(repo)
        if not (info.private or public):
            raise UsageProblem(f"{repo} is on the Hub already, for all to see: say --public, or choose another name.")
        there = {file.rfilename for file in info.siblings or ()}
        plan = plan_push(folder, repo, public=public, hub_card=_card_on_hub(repo, info.sha, there))
        sent = {file.path for file in plan.files}
        stale = {name for name in there if re.fullmatch(r"(default|full)/.*\.parquet", name)} - sent
        commit = api.create_commit(
            repo,
            [
                *(CommitOperationAdd(file.path, file.content) for file in plan.files),
                *(CommitOperationDelete(name) for name in sorted(stale)),
            ],
            commit_message=f"{plan.pairs} preference pairs",
            repo_type="dataset",
            parent_commit=info.sha,
        )
        after = api.dataset_info(repo)
    except PairgenError:
        raise
    except Exception as error:  # the Hub client raises its own, httpx's and the system's errors
        first = (str(error).strip().splitlines() or [""])[0][:300]
        raise PairgenError(
            f"The push to {repo} did not go through ({type(error).__name__}: {first}): log in with `hf auth login`, or "
            "set HF_TOKEN to a token that may write there; --dry-run needs neither."
        ) from None
    return plan, Receipt(f"https://huggingface.co/datasets/{repo}", str(commit.oid), bool(after.private))


def _card_on_hub(repo: str, revision: str | None, there: set[str]) -> str | None:
    if pairset.CARD not in there:
        return None
    import huggingface_hub

    path = huggingface_hub.hf_hub_download(repo, pairset.CARD, repo_type="dataset", revision=revision)
    return Path(path).read_text(encoding="utf-8", errors="replace")


def as_summary(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    return {
        "repo": plan.repo,
        "visibility": "public" if plan.public else "private",
        "pairs": plan.pairs,
        "files": [{"path": f.path, "bytes": len(f.content), "sha256": f.sha256} for f in plan.files],
    }
