"""What the game masters said of the pairs in some sets, and what was dropped and why. Prints Markdown tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from corruptions import STRATEGIES
from pairgen.records import Drop, Pair
from pipelines.pairset import read_drops, read_manifest, read_pairs

WORDS = ("accepted", "violation", "unverifiable")


class Evidence(NamedTuple):
    """The pairs of all sets, and the drops that a strategy's try ended in (not those of the harvest)."""

    pairs: list[Pair]
    drops: list[Drop]


def read(folders: Iterable[Path]) -> Evidence:
    pairs: list[Pair] = []
    drops: list[Drop] = []
    for folder in folders:
        read_manifest(folder)  # says what to do where this is no pair set
        pairs += read_pairs(folder)
        drops += [drop for drop in read_drops(folder) if drop.strategy]
    return Evidence(pairs, drops)


def made(found: Evidence) -> list[str]:
    """Game × strategy. Verdicts are of the pairs that were kept; the drops say what became of the other tries."""
    pairs: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    drops: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pair in found.pairs:
        pairs[pair.game, pair.strategy].append(pair)
    for drop in found.drops:
        drops[drop.game, drop.strategy][drop.reason] += 1
    rows = []
    for cell in sorted({*pairs, *drops}):
        kept, reasons = pairs[cell], drops[cell]
        rows.append((
            *cell, len(kept) + sum(reasons.values()), len(kept), _verdicts(p.chosen_verdict for p in kept),
            _verdicts(p.rejected_verdict for p in kept), _counts(reasons),
        ))  # fmt: skip
    header = (
        "game",
        "strategy",
        "tries",
        "pairs",
        "chosen: acc / viol / unver",
        "rejected: acc / viol / unver",
        "drops",
    )
    return markdown(header, rows)


def chosen(found: Evidence) -> list[str]:
    """How often the chosen side is accepted where that can be told, and each miss with its cause."""
    kept = Counter(_word(p.chosen_verdict) for p in found.pairs)
    accepted = kept["accepted"] + sum(d.reason == "rejected_accepted" for d in found.drops)
    misses = [(p.game, p.experiment, p.task_id, p.move_index, p.strategy, p.chosen_reason)
              for p in found.pairs if _word(p.chosen_verdict) == "violation"]  # fmt: skip
    misses += [(d.game, d.experiment, d.task_id, d.move_index, d.strategy, d.detail)
               for d in found.drops if d.reason == "chosen_violation"]  # fmt: skip
    total = accepted + len(misses)
    lines = [
        f"chosen accepted in {_share(accepted, total)} of the tries that a game master judged; misses: {len(misses)}"
    ]
    return lines + (
        ["", *markdown(("game", "experiment", "task", "move", "strategy", "cause"), sorted(misses))] * bool(misses)
    )


def diverged(found: Evidence) -> list[str]:
    """Episodes that were replayed, those that could not be judged to the end, and why."""
    asked: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    failed: dict[str, dict[tuple[object, ...], str]] = defaultdict(dict)
    order: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for pair in found.pairs:
        name = (pair.experiment, pair.task_id, pair.sample, pair.model)
        asked[pair.game].add(name)
        if _word(pair.chosen_verdict) == "unverifiable":
            failed[pair.game][name] = f"{pair.chosen_verdict} ({_short(pair.chosen_reason)})"
        if pair.chosen_verdict.endswith("(order)"):
            order[pair.game].add(name)
    rows = [
        (game, len(asked[game]), len(order[game]), len(failed[game]), _share(len(failed[game]), len(asked[game])),
         _counts(Counter(failed[game].values())))
        for game in sorted(asked)
    ]  # fmt: skip
    return markdown(("game", "episodes", "in another order", "not judged", "share", "why"), rows)


def broken(found: Evidence, strategies: Sequence[str]) -> list[str]:
    """For strategies that need a violation: the share kept, and what the game masters said of what was kept."""
    kept: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    tries: Counter[tuple[str, str]] = Counter()
    for pair in found.pairs:
        kept[pair.strategy, pair.game][_word(pair.rejected_verdict)] += 1
        tries[pair.strategy, pair.game] += 1
    for drop in found.drops:
        tries[drop.strategy, drop.game] += 1
    rows = []
    for strategy in strategies:
        cells = sorted(cell for cell in tries if cell[0] == strategy)
        for name, group in [*((game, [(strategy, game)]) for _, game in cells), ("all", cells)]:
            said = sum((kept[cell] for cell in group), Counter[str]())
            total = sum(tries[cell] for cell in group)
            judged = said["accepted"] + said["violation"]
            rows.append((strategy, name, total, sum(said.values()),
                         _share(sum(said.values()), total), said["violation"], said["accepted"], said["unverifiable"],
                         _share(said["violation"], judged)))  # fmt: skip
    header = (
        "strategy",
        "game",
        "tries",
        "kept",
        "share kept",
        "violation",
        "accepted",
        "unverifiable",
        "violations of judged",
    )
    return markdown(header, rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (header, ["---"] * len(header), *rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _word(verdict: str) -> str:
    return next((word for word in WORDS if verdict.startswith(word)), "unverifiable")


def _verdicts(verdicts: Iterable[str]) -> str:
    counts = Counter(map(_word, verdicts))
    return " / ".join(str(counts[word]) for word in WORDS)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _short(reason: str) -> str:
    words = " ".join(line.strip(" *") for line in reason.splitlines() if line.strip(" *"))
    return words if len(words) <= 160 else words[:159] + "…"


@click.command()
@click.argument("sets", metavar="PAIRS...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(sets: tuple[Path, ...]) -> None:
    """Print the evidence in these pair sets."""
    found = read(sets)
    strict = [name for name, strategy in STRATEGIES.items() if strategy.requires_violation]
    parts = {"Pairs": made(found), "Chosen": chosen(found), "Replays": diverged(found)}
    for title, lines in {**parts, "Violations": broken(found, strict)}.items():
        print("\n".join([f"\n## {title}\n", *lines]))


if __name__ == "__main__":
    main()
