"""The data-set card: the manifest as a page. What a person wrote around the block, or added to the YAML, stays."""

from __future__ import annotations

import dataclasses
import importlib.resources
import re
from collections.abc import Iterable, Sequence
from string import Template

from pipelines.front_matter import as_yaml, front_matter, taken_apart
from pipelines.funnel import meaning
from pipelines.general import FLAWS
from pipelines.manifest import Manifest
from pipelines.mixed import GENERAL
from pipelines.quality_text import audit_rows, remarks
from pipelines.refine import TokenCheck
from pipelines.screen import Removed

BEGIN, END = "<!-- pairgen:begin -->", "<!-- pairgen:end -->"
FOLDER = "."
"""The place of a set that is not on the Hub."""
CHARACTERS_PER_TOKEN = 2.5
"""Cautious: English text has about four, but games draw grids and list odd words."""


def render(manifest: Manifest, place: str, existing: str = "") -> str:
    """The card of a set that is loaded from `place` (a Hub name, or FOLDER), merged into an `existing` card.

    The existing card's line endings stay.
    """
    old, body = taken_apart(existing.replace("\r\n", "\n"))
    block = _block(manifest, place)
    marked = re.search(f"{BEGIN}((?!{BEGIN}).)*?{END}", body, re.DOTALL)
    body = body[: marked.start()] + block + body[marked.end() :] if marked else f"{body.strip()}\n\n{block}"
    text = f"---\n{as_yaml(front_matter(manifest, old))}---\n\n{body.strip()}\n"
    return text.replace("\n", "\r\n") if "\r\n" in existing else text


def decoded(card: bytes) -> str:
    """A card as text with the line endings that it has; what is no UTF-8, which the Hub does not take, is replaced."""
    return card.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def encoded(card: str) -> bytes:
    return card.encode("utf-8", "replace")


def _block(manifest: Manifest, place: str) -> str:
    m = manifest
    template = Template(importlib.resources.files("pipelines").joinpath("card.md").read_text(encoding="utf-8"))
    v = m.versions
    return template.substitute(
        title=_title(m), introduction=_introduction(m), mixture=_mixture(m), **_code(m, place),
        max_length=max_length_of(m),
        eval_argument='\n    eval_dataset=pairs["test"],' if m.test else "", room=_room(m),
        train=f"{m.train:,}", test=f"{m.test:,}", no_test="" if m.test else " There is no test side.",
        command=m.command, runs=_runs(m), seed=m.config.seed, content=m.content[:16],
        corrected=_corrected(m), drafts=_drafts(m),
        versions=", ".join((f"pairgen {v.pairgen}", f"clemcore {_listed(v.clemcore)}", f"Python {v.python}",
                            f"datasets {v.datasets}", f"pyarrow {v.pyarrow}")),
        funnel=_rows(
            (f"{s.stage} ({s.unit})", f"{s.entered:,}", f"{s.kept:,}",
             "; ".join(f"{r.count:,} {r.reason} ({meaning(r.reason)})" for r in s.dropped) or "none")
            for s in m.funnel
        ),
        table=_table(m),
        lengths=_rows((n.column, f"{n.median:,}", f"{n.p90:,}", f"{n.max:,}") for n in m.lengths),
        longer_rejected=f"{m.longer_rejected:.1%}", verdicts=_rows(dataclasses.astuple(c) for c in m.verdicts),
        evaluation=_evaluation(m), limits=_limits(m), audit=_rows(audit_rows(m.quality.shortcuts)),
        remarks="".join(f"\n{line}" for line in remarks(m.quality)),
    ).strip()  # fmt: skip


def _judges(m: Manifest) -> str:
    return _listed([f"`{d.by}`" for d in m.drafts if d.asked == "judge"])


def _corrected(m: Manifest) -> str:
    """Whose words are on which side, where they are not all the model's own."""
    if not m.recorded_rejected:
        return ""
    return (
        f"\n\nIn {m.recorded_rejected:,} pairs (strategy `corrected`) it is the other way round: `rejected` is what\n"
        "the model said where the game master aborted the episode for it, and `chosen` the correction of that move by\n"
        f"the judge model {_judges(m)}, which the game master accepts."
    )


def _drafts(m: Manifest) -> str:
    """What models were asked for, and what it cost."""
    lines = [
        f"- {d.replies:,} replies were asked of {'the judge' if d.asked == 'judge' else 'the model'} `{d.by}`: "
        f"{d.prompt_tokens:,} tokens in, {d.completion_tokens:,} out{'' if d.cost is None else f', cost {d.cost:g}'}."
        for d in m.drafts
    ]
    return "\n".join(lines) + "\n\n" if lines else ""


def _rows(rows: Iterable[Sequence[object]]) -> str:
    return "\n".join("| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "unknown"


def _table(m: Manifest) -> str:
    judged = {(j.game, j.strategy, j.verdict): j.pairs for j in m.judged}
    verdicts = ("violation", "accepted", "unverifiable")
    return _rows(
        (
            c.game,
            c.strategy,
            c.train,
            c.test,
            *(judged.get((c.game, c.strategy, v), 0 if judged else "?") for v in verdicts),
        )
        for c in m.table
    )


def _code(m: Manifest, place: str) -> dict[str, str]:
    """The parts of the code that say from where and which model: the one that played, or whichever the reader names."""
    here, model = place == FOLDER, trainable(m)
    told = "To train a model, save this as `train.py` and run `python train.py MODEL` (a folder, or a name on the Hub):"
    used = [name for name, needed in (("os", here), ("sys", not model)) if needed]
    return {
        "place": "os.getcwd()" if here else f'"{place}"',
        "where": "In the folder of this file:\n\n" if here else "",
        "import_os": "import os\n\n" if here else "",
        "how_to_train": "To train the model that played:" if model else told,
        "import_both": "".join(f"import {name}\n" for name in used) + "\n" * bool(used),
        "model": f'"{model}"' if model else "sys.argv[1]",
    }


def trainable(m: Manifest) -> str:
    """The one model on the Hub that all moves come from as it is there; with an adapter on it, it is another."""
    models = {r.model if not r.lora else "" for r in m.runs}
    return next((name for name in models if "/" in name and len(models) == 1), "")


def _title(m: Manifest) -> str:
    if m.imported:
        return f"the file {m.imported}"
    games = sorted({c.game for c in m.table} - {GENERAL})
    return f"{_listed(m.models)} playing {_listed(games) if len(games) <= 3 else f'{len(games)} games'}"


def _introduction(m: Manifest) -> str:
    if m.imported:
        return (
            f"{_own(m):,} preference pairs for DPO, read by `pairgen` from the file `{m.imported}` as it was published."
        )
    return (
        f"{_own(m):,} preference pairs for DPO, made by `pairgen` from a language model's own play of\n"
        "dialogue games (clembench). `prompt` is the message list that the model was given, `chosen` the reply that it "
        "gave in an\nepisode that it won, `rejected` a spoiled version of that reply."
    )


def _own(m: Manifest) -> int:
    return m.pairs - (m.mixed.general_taken if m.mixed else 0)


def _mixture(m: Manifest) -> str:
    """What else the set was mixed of, and what was wrong with it."""
    if not m.mixed:
        return ""
    x = m.mixed
    by = f", each value of `{x.stratify}` in proportion" if x.stratify else ""
    flaws = "; ".join(
        f"{f.count:,} {f.flaw} ({FLAWS.get(f.flaw, f.flaw)}; the first is row {f.first:,})" for f in x.flaws
    )
    text = (
        f"\n\nTo them {x.general_taken:,} pairs of the general preference set `{x.general}` (revision `{x.revision}`, "
        f"license {x.license}) were mixed, for training alone, at a ratio of {x.ratio}{by} (strategy `{GENERAL}`, its "
        f"source under `experiment`). Of its {x.read:,} rows, unsound: {flaws or 'none'}; {x.repeated:,} repeat "
        f"another row, {x.over_cap:,} are over {x.max_per_prompt} pairs a prompt, {x.in_test:,} ask what the test side "
        f"asks. The pairs of its own play are the set `{x.pairset}` (content `{x.content[:16]}`)."
    )
    if x.general_taken < x.wanted_general or x.own < x.wanted_own:
        text += (
            f" The ratio is not reached: {x.wanted_own:,} own and {x.wanted_general:,} general pairs were wanted, "
            f"there are {x.own:,} and {x.general_taken:,}."
        )
    return text


def _room(m: Manifest) -> str:
    if m.quality.tokens:
        return f"The longest row has {_longest_tokens(m.quality.tokens):,} tokens of `{m.config.tokenizer}`."
    return f"The longest row has {m.longest_row:,} characters; `max_length` above is an estimate that leaves it room."


def _longest_tokens(check: TokenCheck) -> int:
    return min(check.needed_length, check.max_length) if check.max_length else check.needed_length


def max_length_of(m: Manifest) -> int:
    """What holds the longest row: as counted, or the power of two, at a cautious number of characters in a token."""
    if m.quality.tokens:
        return m.quality.tokens.max_length or m.quality.tokens.needed_length
    characters = m.longest_row
    length = 1024
    while length * CHARACTERS_PER_TOKEN < characters:
        length *= 2
    return length


def _runs(m: Manifest) -> str:
    lines = []
    for r in m.runs:
        facts = [f"{r.episodes:,} episodes"]
        if r.model:
            adapter = f" with the adapter {r.lora}" if r.lora else ""
            facts.append(f"model {r.model}" + (f" at revision {r.revision}" if r.revision else "") + adapter)
        if r.partner:
            facts.append(f"partner {r.partner}, which spoke for the other players and of which no reply is used")
        if r.clembench:
            facts.append(f"clembench at commit `{r.clembench}`")
        if r.temperature >= 0:
            facts.append(
                f"temperature {r.temperature:g}, top-p {r.top_p:g}, at most {r.max_tokens} new tokens"
                + (f", seed {r.seed}" if r.seed >= 0 else "")
            )
        lines.append(f"- run `{r.name}` ({r.command or 'unknown'}): {'; '.join(facts)}.")
    if m.imported:
        return f"- file `{m.imported}`: {m.pairs:,} pairs stay; what it does not say of them is not known."
    outcomes = ", ".join(f"{o.episodes:,} {o.outcome}" for o in m.outcomes)
    return "\n".join(lines) + f"\n\nOutcomes of the episodes: {outcomes}."


def _evaluation(m: Manifest) -> str:
    e = m.evaluation
    if not e.sources:
        return (
            "**Not checked.** "
            + ("" if m.imported else "The set was made with `--no-eval-split`: ")
            + "it may hold evaluation instances, so a model that is trained on it must not be judged on them."
        )
    named = "; ".join(
        f"{'`' + s.name + '`'} ({s.kind}, revision `{s.revision}`, {s.keys:,} keys"
        + (f", {s.contents:,} contents)" if s.contents else ")")
        for s in e.sources
    )
    instances = len({(r.game, r.experiment, r.task_id) for r in e.removed})
    found = (
        f"{e.removed_pairs:,} pairs of {instances:,} evaluation instances were taken out; `manifest.json` "
        "lists them by game, experiment and task under `removed`.\n\n"
        f"| net | instances | pairs |\n|---|--:|--:|\n{_nets(e.removed)}"
        if e.removed_pairs
        else "No pair was of an evaluation instance."
    )
    return "\n\n".join(
        (
            "Checked by instance key, by content, and by what the first prompt asks, each where it is known, against: "
            f"{named}. {found}",
            *e.notes,
        )
    )


def _nets(removed: Sequence[Removed]) -> str:
    nets = sorted({r.net for r in removed})
    return _rows(
        (meaning(net), sum(r.net == net for r in removed), sum(r.pairs for r in removed if r.net == net))
        for net in nets
    )


def _limits(m: Manifest) -> str:
    lines = ["The pairs show what one model does in these games; they say little about other tasks or other models."]
    if m.longer_rejected >= 0.9:
        lines.append(
            f"The rejected side is the longer one in {m.longer_rejected:.1%} of the pairs, so a model can learn to be "
            "brief and nothing else."
        )
    unverified = sum(v.pairs for v in m.verdicts if v.side == "rejected" and v.verdict.startswith("unverifiable"))
    if unverified:
        lines.append(f"In {unverified:,} pairs no game master was asked whether the rejected reply would be accepted.")
    if m.recorded_rejected:
        lines.append(
            f"In {m.recorded_rejected:,} pairs the chosen side is by the judge {_judges(m)}, not by the model that "
            "played: there the set is not on-policy."
        )
    if m.unknown_finish:
        lines.append(
            f"{m.unknown_finish:,} of the harvested moves come from results that do not record why the model ended, so "
            "some may have been cut off."
        )
    return "\n".join(f"- {line}" for line in lines)
