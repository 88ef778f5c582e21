"""`pairgen merge`: parse, merge, print."""

from __future__ import annotations

from pathlib import Path

import click

from pairgen.console import finish, json_option


@click.command()
@click.argument("adapter", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the checkpoint.")
@click.option("--model", default="", help="The base model [the one that the adapter names].")
@click.option("--revision", default=None, help="Revision of a base on the Hub [the one that the adapter names].")
@click.option("--overwrite", is_flag=True, help="Replace the checkpoint in --out.")
@json_option
def command(adapter: Path, out: Path, model: str, revision: str | None, overwrite: bool, as_json: bool) -> None:
    """Merge the LoRA adapter in the folder ADAPTER into its base model: a normal checkpoint that ends its turns."""
    from pipelines import merge
    from pipelines.train_model import check_installed, quiet

    check_installed()
    with quiet():
        made = merge.merge(adapter, out, model=model, revision=revision, overwrite=overwrite)
    summary = {**made._asdict(), "out": str(made.out), "eos_token_ids": list(made.eos_token_ids)}
    finish(summary, merge.lines_of(made), as_json=as_json)
