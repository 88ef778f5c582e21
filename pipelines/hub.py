"""The Hub as a push sees it: who asks, what stands there, and its errors as sentences. Sends no data.

The token is found by huggingface_hub (HF_TOKEN, or the login) and appears in no text of ours.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pairgen.errors import PairgenError, UsageProblem
from pipelines.patience import Patience, may_pass, offline, reason, status_of

KIND = "dataset"
T = TypeVar("T")
BEARER = r"(?i)(bearer )[^\s'\"]+"


class Account(NamedTuple):
    """Whose token it is, and which organisations it may name."""

    name: str
    orgs: tuple[str, ...]


class Standing(NamedTuple):
    """What a data set on the Hub is at its newest revision of a branch; `files` maps a path to its content's id."""

    private: bool
    head: str
    files: Mapping[str, str]


class Hub:
    """The calls that read, each with patience; `api` is huggingface_hub's own."""

    def __init__(self, patience: Patience):
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars

        if not sys.stderr.isatty():
            disable_progress_bars()
        self.api = HfApi()
        self.endpoint = str(self.api.endpoint).rstrip("/")
        self.patience = patience

    def url(self, repo: str, rest: str = "") -> str:
        return f"{self.endpoint}/datasets/{repo}{rest}"

    def account(self) -> Account:
        """Who the token belongs to. Raises PairgenError without a token that the Hub knows and that may write."""
        from huggingface_hub import get_token

        if get_token() is None:
            raise PairgenError(
                "A push needs a token of the Hub: log in with `hf auth login`, or set HF_TOKEN to a token that may "
                "write; --dry-run needs neither."
            )
        try:
            said = self.patience.call("asking the Hub whose token this is", self.api.whoami)
        except Exception as error:
            if status_of(error) in (401, 403):
                raise PairgenError(
                    f"{self.endpoint} does not take this token: log in again with `hf auth login`, or set HF_TOKEN to "
                    "a token that is valid there."
                ) from None
            raise self.failed(error, "asking whose token this is") from None
        if ((said.get("auth") or {}).get("accessToken") or {}).get("role") == "read":
            raise PairgenError(
                f"The token of {said['name']} may only read: make one that may write at "
                f"{self.endpoint}/settings/tokens and log in with it (`hf auth login`, or HF_TOKEN)."
            )
        return Account(str(said["name"]), tuple(str(org["name"]) for org in said.get("orgs") or ()))

    def standing(self, repo: str, revision: str | None = None) -> Standing | None:
        """What stands there, None where there is no such data set (or, with a `revision`, no such branch)."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

        def read() -> Standing | None:
            try:
                info = self.api.dataset_info(repo, revision=revision)
            except (RepositoryNotFoundError, RevisionNotFoundError) as error:
                if isinstance(error, RepositoryNotFoundError) and status_of(error) == 403:
                    raise
                return None
            if info.id and info.id != repo:
                raise UsageProblem(f"{repo} is called {info.id} on the Hub: push to that name.")
            tree = self.api.list_repo_tree(repo, recursive=True, revision=info.sha, repo_type=KIND)
            files = {e.path: e.lfs.sha256 if e.lfs else e.blob_id for e in tree if hasattr(e, "blob_id")}
            return Standing(bool(info.private), str(info.sha), files)

        found: Standing | None = self.ask(f"looking at {repo}", read)
        return found

    def tags(self, repo: str) -> dict[str, str]:
        """The tags of a data set, each with its commit."""
        refs = self.ask(f"reading the tags of {repo}", lambda: self.api.list_repo_refs(repo, repo_type=KIND))
        return {tag.name: tag.target_commit for tag in refs.tags}

    def content(self, repo: str, path: str, revision: str) -> bytes:
        """One small file at a revision; no cache keeps it."""

        def read() -> bytes:
            with tempfile.TemporaryDirectory(prefix="pairgen-hub-") as cache:
                found = self.api.hf_hub_download(repo, path, repo_type=KIND, revision=revision, cache_dir=cache)
                return Path(found).read_bytes()

        text: bytes = self.ask(f"reading {path} of {repo}", read)
        return text

    def schema(self, repo: str, path: str, revision: str) -> Any:
        """The arrow schema of a parquet file at a revision, of which only the end is read; None for a broken one."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from huggingface_hub import HfFileSystem

        def read() -> Any:
            files = HfFileSystem(endpoint=self.endpoint, skip_instance_cache=True)
            with files.open(f"datasets/{repo}@{revision}/{path}", "rb", block_size=2**18) as file:
                try:
                    return pq.read_schema(file)
                except pa.ArrowInvalid:
                    return None

        return self.ask(f"reading the columns of {path} of {repo}", read)

    def ask(self, what: str, work: Callable[[], T]) -> T:
        """What `work` gives, asked with patience; every error of the client becomes a sentence."""
        try:
            return self.patience.call(what, work)
        except PairgenError:
            raise
        except Exception as error:
            raise self.failed(error, what) from None

    def failed(self, error: BaseException, what: str) -> PairgenError:
        """What went wrong, and what to do, in one sentence."""
        status = status_of(error)
        if may_pass(error):
            return PairgenError(
                f"The Hub at {self.endpoint} did not serve {what}: {reason(error)}; push again later, or let it take "
                "longer with --wait SECONDS."
            )
        if status == 404 and "xet-" in str(error):
            return PairgenError(
                f"The Hub at {self.endpoint} has no Xet storage, which this huggingface_hub sends to: set "
                "HF_HUB_DISABLE_XET=1, and push again."
            )
        if status in (401, 403):
            return PairgenError(
                f"The Hub refused {what} ({status}): use a token that may write there "
                f"({self.endpoint}/settings/tokens, then `hf auth login` or HF_TOKEN), or "
                "--pull-request for a data set of others."
            )
        if offline(error):
            return PairgenError("HF_HUB_OFFLINE is set, so nothing can be pushed: unset it, or use --dry-run.")
        return PairgenError(
            f"The Hub client failed at {what} ({told(error)}): see --dry-run for what would go, and push again."
        )


def told(error: BaseException) -> str:
    """An error of a client in one line, without the token that such texts may quote."""
    from huggingface_hub import get_token

    token, text = get_token(), " ".join(str(error).split())
    text = text.replace(token, "…") if token else text
    text = re.sub(BEARER, r"\1…", text)[:300]
    return f"{type(error).__name__}: {text}".rstrip(": ")


def content_id(path: Path | None, content: bytes, *, large: bool) -> str:
    """What the Hub calls this content: its sha256 in large-file storage, else git's id of it."""
    size = path.stat().st_size if path else len(content)
    digest = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % size)
    if path is None:
        digest.update(content)
    else:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()
