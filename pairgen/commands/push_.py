"""`pairgen push`: parse, publish (or show what would be published), print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pairgen.console import Number, finish, json_option, say, table

if TYPE_CHECKING:
    from pipelines.push import PushConfig


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path))
@click.argument("repo", metavar="USER/NAME")
@click.option("--dry-run", is_flag=True, help="Send nothing: show it, and write it to a folder. No token, no network.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the dry run [PAIRS.push].")
@click.option("--public", is_flag=True, help="Everybody may see the data set; without it, its owner alone.")
@click.option("--branch", default="", metavar="NAME", help="Commit to this branch, made from main if it is not there.")
@click.option("--pull-request", is_flag=True, help="Open a pull request with the commit; the data set stays as it is.")
@click.option("--tag", default="", metavar="NAME", help="Tag the revision (v1) once it is loaded back and compared.")
@click.option(
    "--force", is_flag=True,
    help="In this one commit, delete data files on the Hub that pairgen did not write, and replace tables of other "
    "columns or of another maker; each is named. Earlier revisions keep them.",
)  # fmt: skip
@click.option(
    "--wait", type=Number(min=0), default=300, show_default=True, metavar="SECONDS",
    help="How long to wait for a busy Hub, in all; the Hub client's own retries of an upload come on top.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an earlier dry run in --out.")
@json_option
def command(
    pairs: Path, repo: str, dry_run: bool, out: Path | None, overwrite: bool, as_json: bool, **options: Any
) -> None:
    """Publish the pair set PAIRS as a data set on the Hub, in one commit; private unless --public.

    Then it is loaded back at that revision and compared with PAIRS. The token is that of HF_TOKEN or `hf auth login`;
    HF_ENDPOINT names another Hub. When it fails, the data set is as it was.
    """
    from pipelines import push
    from pipelines.push import PushConfig

    config = PushConfig(**options)
    push.check(repo, config)
    if dry_run:
        _dry_run(pairs, repo, config, out, overwrite=overwrite, as_json=as_json)
        return
    if out or overwrite:
        raise click.UsageError("--out and --overwrite belong to --dry-run.")
    plan, receipt = push.push(pairs, repo, config, say)
    seen = "private" if receipt.private else "public"
    summary = {
        **_planned(plan, config), "dry_run": False, "url": receipt.url, "commit": receipt.commit, "visibility": seen,
        "changed": receipt.changed, "deleted": list(receipt.deleted), "replaced": list(receipt.replaced),
        "verified": True,
    }  # fmt: skip
    lines = [
        f"{plan.pairs:,} pairs are at {receipt.url} ({seen}, revision {receipt.commit}"
        f"{f', tag {config.tag}' if config.tag else ''}){'' if receipt.changed else ': nothing changed'}.",
        *([f"Deleted: {', '.join(receipt.deleted)}."] if receipt.deleted else []),
        "Loaded back at that revision: rows, columns and contents equal those of the folder.",
    ]
    finish(summary, lines, as_json=as_json)


def _planned(plan: Any, config: PushConfig) -> dict[str, Any]:
    from pipelines import publish

    return {
        **publish.as_summary(plan), "branch": config.branch, "pull_request": config.pull_request, "tag": config.tag
    }  # fmt: skip


def _dry_run(pairs: Path, repo: str, config: PushConfig, out: Path | None, *, overwrite: bool, as_json: bool) -> None:
    from pipelines import pairset, publish

    plan = publish.plan_push(pairs, repo, public=config.public)
    folder = out or (pairs if pairs.name else pairs.resolve()).with_name(f"{pairs.resolve().name}.push")
    publish.write_copy(plan, folder, overwrite=overwrite or out is None)
    rows = [(f.path, f.size, f.sha256) for f in plan.files]
    lines = [
        pairset.read_card(folder),
        *table(rows, ("file", "bytes", "sha256")),
        "",
        f"Nothing was sent. One commit of {len(rows)} files would go to the "
        f"{'public' if config.public else 'private'} data set {repo}; the same files are in {folder}.",
    ]
    finish({**_planned(plan, config), "dry_run": True, "out": str(folder)}, lines, as_json=as_json)
