"""Cleaning at scale: a made-up corpus through the nets, dedup, split and audit. Prints time and peak memory a stage.

The corpus has what real sets have: games with templates, instances played several times, moves that share their first
prompt, answers that many moves repeat, copies, near copies, and instances of the evaluation split under other numbers.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl

from pairgen.console import table
from pairgen.records import InstanceKey, Message, Pair, content_id, polars_schema, to_dict
from pipelines.audit import audit
from pipelines.decontaminate import EvalSource, EvalSplit, Net, caught
from pipelines.dedup import Limits, repeats
from pipelines.first_prompts import EvalPrompt, first_of, templates_of, with_asked
from pipelines.remainder_net import net_remainders
from pipelines.slim import slim, without
from pipelines.split import shared, sides
from pipelines.thin import thin

CHUNK = 20_000
GAMES = 12
HEADS = ("ba", "de", "fi", "go", "lu", "mar", "nel", "pos", "ri", "sun", "tov", "wen")
TAILS = ("ck", "dle", "ford", "gan", "ham", "line", "mer", "nut", "port", "rix", "sel", "ton")
WORDS = [head + tail for head in HEADS for tail in TAILS]
RULES = [" ".join(random.Random(f"{game} {i}").choices(WORDS, k=12)) + "." for game in range(GAMES) for i in range(14)]


@click.command()
@click.argument("sizes", nargs=-1, type=int)
@click.option("--run", type=click.Path(path_type=Path), hidden=True)
def main(sizes: tuple[int, ...], run: Path | None) -> None:
    """Measure corpora of these SIZES (10,000, 100,000 and 1,000,000 if none is given), each in a process of its own."""
    if run:
        print(json.dumps(measure(run)))
        return
    rows = []
    for size in sizes or (10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory(prefix="pairgen-scale-") as folder:
            text = make(Path(folder), size)
            command = [sys.executable, __file__, "--run", folder]
            stages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            stages.append(("all", *(sum(s[i] for s in stages) for i in (1, 2)), stages[-1][3], text))
            rows += [
                (f"{size:,}", name, f"{wall:.1f} s", f"{cpu:.1f} s", f"{mib:,} MiB", what)
                for name, wall, cpu, mib, what in stages
            ]
    print("\n".join(table(rows, ("pairs", "stage", "time", "of processors", "peak so far", "what came of it"))))


def measure(folder: Path) -> list[tuple[str, float, float, int, str]]:
    """Each stage on the corpus in `folder`.

    Its name, seconds, seconds of processors, peak memory of the process so far (MiB), and its counts.
    """
    pairs = pl.scan_parquet(folder / "*.parquet")
    told = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    keys = frozenset(InstanceKey(*key) for key in told["keys"])
    contents = {content: InstanceKey(*key) for content, key in told["contents"]}
    split = EvalSplit(keys, contents, (EvalSource("keys", "made up", "", len(keys), 0),))
    prompts = [EvalPrompt(InstanceKey(*key), role, text) for key, role, text in told["prompts"]]
    stages: list[tuple[str, float, float, int, str]] = []
    begun, used = time.monotonic(), time.process_time()

    def done(name: str, what: str) -> None:
        nonlocal begun, used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        stages.append((name, time.monotonic() - begun, time.process_time() - used, peak, what))
        begun, used = time.monotonic(), time.process_time()

    rows = slim(pairs)
    done("slim rows", f"{rows.height:,} rows, {rows.estimated_size() // 2**20} MiB")
    out = caught(rows, Net(split))
    rows = without(rows, out)
    done("nets 1 and 2", reasons(out))
    templates = templates_of(rows, pairs, prompts)
    done("templates", f"{len(templates)}")
    out = net_remainders(rows, pairs, prompts, templates).decided
    rows = without(rows, out)
    done("net 3", reasons(out))
    out = repeats(rows, Limits(), pairs, templates)
    rows = without(rows, out)
    done("dedup", reasons(out))
    rows = sides(with_asked(rows, pairs, templates), 0.1, 42, "asked")
    both = shared(rows, "asked").height
    done("split", f"{(rows['split'] == 'test').sum():,} test, {both} prompts on both sides")
    found = audit(rows, pairs)
    done("audit", ", ".join(f"{s.rule} {s.test:.2f}" for s in found if not s.strategy))
    thinned = thin(rows, 0.8)
    rows = without(rows, thinned.decided)
    done("thin", ", ".join(f"{s.split} {s.before:.2f} to {s.after:.2f}" for s in thinned.sides))
    kept = rows.select("row", "split").lazy()
    pairs.drop("split").with_row_index("row").join(kept, on="row").drop("row").sink_parquet(folder / "kept.out")
    done("write what stays", f"{rows.height:,} pairs")
    return stages


def reasons(decided: pl.DataFrame) -> str:
    return ", ".join(f"{n:,} {r}" for r, n in decided.group_by("reason").len().sort("reason").iter_rows()) or "none"


def make(folder: Path, size: int) -> str:
    """Write a corpus of `size` pairs and what is evaluation in it; says how much text that is."""
    chance = random.Random(size)
    evaluation: dict[str, list[object]] = {"keys": [], "contents": [], "prompts": []}
    made: list[Pair] = []
    parts = characters = 0
    for pair in islice_pairs(chance, size, evaluation):
        made.append(pair)
        characters += sum(len(m.content) for m in (*pair.prompt, *pair.chosen, *pair.rejected))
        if len(made) == CHUNK:
            write(folder, parts, made)
            made, parts = [], parts + 1
    if made:
        write(folder, parts, made)
    (folder / "evaluation.json").write_text(json.dumps(evaluation), encoding="utf-8")
    return f"{characters / 1e6:,.0f} million characters"


def write(folder: Path, part: int, pairs: list[Pair]) -> None:
    frame = pl.DataFrame([to_dict(p) for p in pairs], schema=polars_schema(Pair))
    frame.write_parquet(folder / f"{part:04}.parquet")


def islice_pairs(chance: random.Random, size: int, evaluation: dict[str, list[object]]) -> Iterator[Pair]:
    count = task = 0
    while True:
        task += 1
        for pair in instance_pairs(chance, task, evaluation):
            yield pair
            count += 1
            if count == size:
                return


def instance_pairs(chance: random.Random, task: int, evaluation: dict[str, list[object]]) -> list[Pair]:
    """The pairs of one instance: four plays of a few turns, two strategies each."""
    game = chance.randrange(GAMES)
    name, experiment = f"game{game}", f"exp{task % 3}"
    asked = chance.choices(WORDS, k=chance.choice((1, 5, 30)) if game % 2 else 6)
    first = f"{chr(10).join(RULES[game * 14 : game * 14 + 14])}\n\nYour words are: {', '.join(asked)}.\nBegin."
    key, content = InstanceKey(name, experiment, task), content_id(name, asked)
    prompt = (Message("user", first),)
    fate = chance.random()
    if fate < 0.03:
        by_key, by_content = fate < 0.01, fate < 0.02
        known = key if by_key else key._replace(task_id=task + 10_000_000)
        evaluation["keys"].append(known)
        if by_content:
            evaluation["contents"].append((content, known))
        evaluation["prompts"].append((known, "Giver", first_of(prompt)))
    made: list[Pair] = []
    for sample in range(4):
        turns = prompt
        for index in range(chance.randint(1, 6)):
            reply = say(chance, game, asked)
            made += [spoil(chance, key, content, sample, index, turns, reply, s) for s in ("verbose", "contrast")]
            turns = (*turns, Message("assistant", reply), Message("user", f"No. {chance.choice(WORDS)}. Turn {index}."))
    if chance.random() < 0.1:
        made.append(copy(chance, made[0]))
    return made


def say(chance: random.Random, game: int, asked: list[str]) -> str:
    if game % 3 == 0:
        return f"GUESS: {chance.choice(WORDS)}"
    return f"CLUE: {chance.choice(asked)} " + " ".join(chance.choices(WORDS, k=chance.choice((3, 10, 40))))


def spoil(
    chance: random.Random, key: InstanceKey, content: str, sample: int, index: int,
    prompt: tuple[Message, ...], reply: str, strategy: str,
) -> Pair:  # fmt: skip
    tail = " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))
    spoilt = f"{reply}\nNote: {tail}" if strategy == "verbose" else tail
    move = content_id(*key, sample, index)
    return Pair(
        content_id(move, strategy, spoilt), prompt, (Message("assistant", reply),), (Message("assistant", spoilt),),
        strategy, "", *key, sample, content_id(*key, sample), move, index, "Player 1", "Giver", "made-up", "success",
        100.0, "accepted", "", "violation", "", content, "",
    )  # fmt: skip


def copy(chance: random.Random, pair: Pair) -> Pair:
    """The same pair from another play, its chosen side sometimes with one word more."""
    more = chance.choice(("", " so"))
    fields = {name: getattr(pair, name) for name in Pair.__slots__}
    chosen = (Message("assistant", pair.chosen[0].content + more),)
    return Pair(**{**fields, "pair_id": content_id(pair.pair_id, more), "sample": 9, "chosen": chosen})


if __name__ == "__main__":
    main()
