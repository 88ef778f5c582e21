"""`pairgen mix`: parse, mix, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.console import finish, json_option, table


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option(
    "--with", "general", required=True, metavar="DATASET[@REV]",
    help="A general preference set: USER/NAME[:CONFIG[:SPLIT]] on the Hub, a file, a folder, or another pair set.",
)  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the mixture.")
@click.option("--ratio", default="1:1", show_default=True, metavar="OWN:GENERAL", help="Of the pairs to train on.")
@click.option(
    "--total", type=click.IntRange(0), default=0, help="Pairs to train on in all [all own ones, and to match]."
)
@click.option("--stratify", default="", metavar="COLUMN", help="Keep the general set's proportions of this column.")
@click.option(
    "--max-per-prompt",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Pairs a prompt, on both sides; 0: any.",
)
@click.option("--license", default="", help="Of the mixture, as the Hub names it [what the general set's card says].")
@click.option("--seed", type=int, default=42, show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace the pair set in --out.")
@json_option
def command(pairs: Path, general: str, out: Path, overwrite: bool, as_json: bool, **options: Any) -> None:
    """Mix the pair set PAIRS with a general preference set, into one pair set that trains as it is.

    Training on games alone can cost a model what it could do before; half general pairs hold that up (a published
    recipe takes 1:1, stratified by source, at most 20 pairs a prompt). Rows whose sides do not answer the same prompt
    are counted and left out. The test side is that of PAIRS, so that it stays comparable.
    """
    from pairgen.records import to_dict
    from pipelines.general import FLAWS
    from pipelines.mix import MixConfig, mix
    from pipelines.quality_text import quality_lines

    made = mix(pairs, general, out, MixConfig(**options), overwrite=overwrite)
    x = made.mixed
    assert x is not None
    left_out = [(f.count, f.flaw, FLAWS[f.flaw], f"row {f.first}: {f.example}") for f in x.flaws]
    left_out += [(x.repeated, "repeated", "the same as another row", "")] if x.repeated else []
    left_out += [(x.over_cap, "max_per_prompt", "over --max-per-prompt", "")] if x.over_cap else []
    left_out += [(x.in_test, "in_test", "asks what the test side asks", "")] if x.in_test else []
    lines = [f"{x.read} rows in {x.general} (revision {x.revision}), license {x.license}", ""]
    lines += [*table(left_out, ("rows", "left out", "because", "first")), ""] if left_out else []
    if (x.own, x.general_taken) != (x.wanted_own, x.wanted_general):
        lines.append(
            f"The ratio {x.ratio} is not reached: {x.wanted_own} own and {x.wanted_general} general pairs were wanted, "
            f"there are {x.own} and {x.general_taken}."
        )
    if not options["license"] and x.license == "other":
        lines.append("The general set names no license, so the mixture has none: say --license.")
    lines += [*quality_lines(made.quality), ""]
    lines.append(
        f"{x.own} own and {x.general_taken} general pairs to train on, {made.test} own ones for the test are in {out}"
    )
    lines.append(f"next: pairgen dpo {shlex.quote(str(out))} --model MODEL --out DIR")
    summary = {
        "out": str(out), "pairs": made.pairs, "train": made.train, "test": made.test, "content": made.content,
        **{key: value for key, value in to_dict(x).items() if key != "before"}, "quality": to_dict(made.quality),
    }  # fmt: skip
    finish(summary, lines, as_json=as_json)
