"""Publishing a pair set on the Hub: look, refuse, one commit, load it back, compare, tag. Makes no pairs.

Until the commit nothing of the data set changes, and the commit is refused by the Hub when its head has moved.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pipelines import fingerprint, loadback, occupied, pairset, publish
from pipelines.hub import KIND, Account, Hub, Standing, content_id
from pipelines.patience import Patience, may_pass, status_of

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PushConfig:
    """How a pair set is pushed; `wait` is the seconds that it waits for a busy Hub, in all."""

    public: bool = False
    branch: str = ""
    pull_request: bool = False
    tag: str = ""
    force: bool = False
    wait: float = 300.0


class Receipt(NamedTuple):
    """What a push did, as the Hub says it. `deleted` were in the commit before; `replaced` is what --force overrode."""

    url: str
    commit: str
    private: bool
    changed: bool
    deleted: tuple[str, ...]
    replaced: tuple[str, ...]


class Changes(NamedTuple):
    """What of a plan is new to the data set, and what of the data set is not in the plan any more."""

    add: tuple[publish.Published, ...]
    delete: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.add or self.delete)


def push(folder: Path, repo: str, config: PushConfig, say: Say) -> tuple[publish.Plan, Receipt]:
    """Send the pair set to the Hub in one commit, load it back at that revision, and compare it with the folder.

    Files that an earlier push left go in the same commit. The card's text around the marked block stays as it is on
    the Hub. Raises UsageProblem for what the options cannot mean, PairgenError for all else that stops a push.
    """
    check(repo, config)
    pairset.read_manifest(folder)
    hub = Hub(Patience(config.wait, say))
    account = hub.account()
    there = hub.standing(repo)
    _check_name(account, repo, config, there)
    if there:
        _check_visibility(hub, repo, config, there)
        _check_tag(hub, repo, config)
    plan = publish.plan_push(folder, repo, public=config.public)
    here = fingerprint.of_folder(folder)
    base = hub.standing(repo, config.branch) if there and config.branch else there
    branch_is_new = bool(config.branch) and base is None
    base = base or there
    replaced = _override(hub, repo, config, base, say)
    created = base is None
    try:
        if base is None:
            base = _create(hub, repo, config)
        plan = _with_hub_card(hub, plan, folder, base)
        changes = changes_of(plan, base, force=config.force)
        if branch_is_new:
            _branch(hub, repo, config.branch, base)
        commit, number = _commit(hub, plan, config, base, changes, say) if changes else (base.head, 0)
    except PairgenError as error:
        if created:
            raise PairgenError(f"{str(error).rstrip('.')}; {repo} was created by this push, without data.") from None
        raise
    url = hub.url(repo, f"/discussions/{number}" if number else f"/tree/{config.branch}" if config.branch else "")
    say(f"{'sent' if changes else 'nothing changed'}: revision {commit}; loading it back to compare")
    _compare(here, repo, commit, base, hub.patience.left)
    if config.tag:
        _tag(hub, repo, config.tag, commit)
    after = hub.standing(repo)
    return plan, Receipt(url, commit, bool(after and after.private), bool(changes), changes.delete, replaced)


def check(repo: str, config: PushConfig) -> None:
    """Raise UsageProblem for options that do not go together."""
    publish.check_repo(repo)
    if config.pull_request and (config.branch or config.tag):
        raise UsageProblem(
            "--pull-request goes with neither --branch nor --tag: push the pull request, and tag what is merged."
        )


def changes_of(plan: publish.Plan, base: Standing, *, force: bool) -> Changes:
    """What differs between the plan and the data set. Foreign files count as gone only with `force`."""
    add = tuple(f for f in plan.files if base.files.get(f.path) != _id_like(f, base.files.get(f.path)))
    gone = {path for path in base.files if occupied.is_own(path)} | (
        set(occupied.foreign(base.files)) if force else set()
    )
    return Changes(add, tuple(sorted(gone - {f.path for f in plan.files})))


def _id_like(file: publish.Published, known: str | None) -> str:
    """The id of a file in the notation of the one that the Hub has there."""
    if known is None or len(known) == 64:
        return file.sha256
    return content_id(file.source, file.content, large=False)


def _check_name(account: Account, repo: str, config: PushConfig, there: Standing | None) -> None:
    user, names = repo.split("/")[0], (account.name, *account.orgs)
    if user in names or (config.pull_request and there):
        return
    name = repo.split("/")[1]
    others = f" or one of its organisations ({', '.join(account.orgs)})" if account.orgs else ""
    raise UsageProblem(
        f"The token is of {account.name}, who is not {user}: push to {account.name}/{name}{others}, or log in "
        f"as {user}."
    )


def _check_visibility(hub: Hub, repo: str, config: PushConfig, there: Standing) -> None:
    settings = hub.url(repo, "/settings")
    if config.public and there.private:
        raise UsageProblem(
            f"{repo} is on the Hub already and private, which a push does not change: leave --public out, or make it "
            f"public at {settings}."
        )
    if not (config.public or there.private or config.pull_request):
        raise UsageProblem(
            f"{repo} is on the Hub already, for all to see: say --public, choose another name, or make it private at "
            f"{settings}."
        )


def _check_tag(hub: Hub, repo: str, config: PushConfig) -> None:
    if config.tag and (at := hub.tags(repo).get(config.tag)):
        raise UsageProblem(
            f"The tag {config.tag} is at revision {at[:12]} of {repo} already: choose another --tag, or take it away "
            f"with `hf repos tag delete {repo} {config.tag} --type dataset`."
        )


def _override(hub: Hub, repo: str, config: PushConfig, base: Standing | None, say: Say) -> tuple[str, ...]:
    """What --force puts an end to, in words; raises UsageProblem where it was not said and there is something."""
    if base is None:
        return ()
    foreign = occupied.foreign(base.files)
    other = occupied.of_other_making(base.files, _manifest(hub, repo, base))
    if not other:
        tables = [path for path in fingerprint.TABLES if path in base.files]
        other = occupied.of_other_columns({path: hub.schema(repo, path, base.head) for path in tables})
    if not (foreign or other):
        return ()
    does = "; ".join(
        [*([f"delete {', '.join(foreign)}"] if foreign else []), *([f"replace {', '.join(other)}"] if other else [])]
    )
    if not config.force:
        raise UsageProblem(
            f"{repo} holds what pairgen did not write or wrote otherwise: choose another name, or --force, which would "
            f"{does} (earlier revisions keep them)."
        )
    say(f"--force: will {does}")
    return (*foreign, *other)


def _manifest(hub: Hub, repo: str, base: Standing) -> Any:
    if store.MANIFEST not in base.files:
        return None
    try:
        return json.loads(hub.content(repo, store.MANIFEST, base.head))
    except ValueError:
        return None


def _create(hub: Hub, repo: str, config: PushConfig) -> Standing:
    def make() -> None:
        hub.api.create_repo(repo, repo_type=KIND, private=not config.public, exist_ok=True)

    hub.ask(f"the making of {repo}", make)
    base = hub.standing(repo)
    if base is None:
        raise PairgenError(f"{repo} was created, but the Hub does not show it yet: push again.")
    _check_visibility(hub, repo, config, base)
    return base


def _with_hub_card(hub: Hub, plan: publish.Plan, folder: Path, base: Standing) -> publish.Plan:
    if pairset.CARD not in base.files:
        return plan
    return publish.with_card(plan, folder, hub.content(plan.repo, pairset.CARD, base.head))


def _branch(hub: Hub, repo: str, branch: str, base: Standing) -> None:
    def make() -> None:
        hub.api.create_branch(repo, branch=branch, revision=base.head, repo_type=KIND, exist_ok=True)

    hub.ask(f"the making of branch {branch}", make)


def _commit(
    hub: Hub, plan: publish.Plan, config: PushConfig, base: Standing, changes: Changes, say: Say
) -> tuple[str, int]:
    """Send the one commit; the revision, and the number of the pull request (0: none).

    An answer may be lost: before it is sent again, the head tells whether it came through.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    def attempt() -> tuple[str, int]:
        operations = [
            *(CommitOperationAdd(file.path, str(file.source) if file.source else file.content) for file in changes.add),
            *(CommitOperationDelete(path) for path in changes.delete),
        ]
        try:
            made = hub.api.create_commit(
                plan.repo, operations, commit_message=f"{plan.pairs} preference pairs", repo_type=KIND,
                revision=config.branch or None, parent_commit=base.head, create_pr=config.pull_request,
            )  # fmt: skip
            return str(made.oid), int(made.pr_num or 0)
        except Exception as error:
            if status_of(error) in (409, 412) or may_pass(error):
                now = hub.standing(plan.repo, config.branch or None) or base
                if now.head != base.head and not config.pull_request and not changes_of(plan, now, force=config.force):
                    return now.head, 0
                if now.head != base.head or not may_pass(error):
                    raise PairgenError(
                        f"{plan.repo} was changed by somebody else while this push was made, and stays so: push again."
                    ) from None
            raise

    total = sum(file.size for file in changes.add)
    say(f"sending {len(changes.add)} files ({total / 1e6:.1f} MB) to {hub.url(plan.repo)}")
    return hub.ask("the commit", attempt)


def _compare(here: dict[str, fingerprint.Table], repo: str, commit: str, base: Standing, wait: float) -> None:
    """Raise PairgenError unless the data set loads at this revision as the folder does."""
    try:
        loaded = loadback.load(repo, commit, wait)
    except PairgenError as error:
        raise PairgenError(
            f"{repo} is at revision {commit} now, but could not be loaded back ({str(error).rstrip('.')}): push again, "
            "which then sends nothing and compares."
        ) from None
    found = fingerprint.differences(here, loaded)
    if found:
        raise PairgenError(
            f"{repo} at revision {commit} does not load as the folder does: {'; '.join(found)}; the revision before, "
            f"{base.head}, is unharmed: load that one, and push again with another version of datasets."
        )


def _tag(hub: Hub, repo: str, tag: str, commit: str) -> None:
    def make() -> None:
        try:
            hub.api.create_tag(repo, tag=tag, revision=commit, repo_type=KIND)
        except Exception as error:
            if status_of(error) != 409 or hub.tags(repo).get(tag) != commit:
                raise

    try:
        hub.ask(f"the tag {tag}", make)
    except PairgenError as error:
        raise PairgenError(
            f"{repo} is at revision {commit} and right, but without the tag: {error} "
            f"Push again with --tag {tag}, which sends nothing else."
        ) from None
