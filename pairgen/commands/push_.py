"""`pairgen push`: parse, publish (or show what would be published), print."""

from __future__ import annotations

from pathlib import Path

import click

from pairgen.console import finish, json_option, table


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path))
@click.argument("repo", metavar="USER/NAME")
@click.option("--dry-run", is_flag=True, help="Send nothing: show it, and write it to a folder. No token, no network.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the dry run [PAIRS.push].")
@click.option("--public", is_flag=True, help="Everybody may see the data set; without it, its owner alone.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier dry run in --out.")
@json_option
def command(
    pairs: Path, repo: str, dry_run: bool, out: Path | None, public: bool, overwrite: bool, as_json: bool
) -> None:
    """Publish the pair set PAIRS as a data set on the Hub, in one commit; private unless --public."""
    from pipelines import pairset, publish

    if not dry_run:
        if out or overwrite:
            raise click.UsageError("--out and --overwrite belong to --dry-run.")
        plan, receipt = publish.push(pairs, repo, public=public)
        seen = "private" if receipt.private else "public"
        summary = {**publish.as_summary(plan), "dry_run": False, "url": receipt.url, "commit": receipt.commit}
        summary["visibility"] = seen
        finish(summary, [f"{plan.pairs} pairs are at {receipt.url} ({seen}, commit {receipt.commit})"], as_json=as_json)
        return
    plan = publish.plan_push(pairs, repo, public=public)
    folder = out or (pairs if pairs.name else pairs.resolve()).with_name(f"{pairs.resolve().name}.push")
    publish.write_copy(plan, folder, overwrite=overwrite or out is None)
    rows = [(f.path, len(f.content), f.sha256) for f in plan.files]
    lines = [
        pairset.read_card(folder),
        *table(rows, ("file", "bytes", "sha256")),
        "",
        f"Nothing was sent. One commit of {len(rows)} files would go to the "
        f"{'public' if public else 'private'} data set {repo}; the same files are in {folder}.",
    ]
    finish({**publish.as_summary(plan), "dry_run": True, "out": str(folder)}, lines, as_json=as_json)
