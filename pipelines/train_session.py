"""A training as a person asks for it: rows checked, memory and batch said, trained, merged, accounted for.

Knows neither DPO nor SFT: each brings its rows and its trainer as a `Kind`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.console import say
from pairgen.engines.arguments import loose
from pairgen.records import Pair, to_dict
from pipelines import train, train_folder, train_model
from pipelines.recipes import Hyper, settle
from pipelines.train_config import C, TrainConfig, resumed
from pipelines.train_end import close, model_name
from pipelines.train_memory import Load
from pipelines.train_pairs import Loaded, check_columns
from pipelines.train_plan import plan
from pipelines.train_rows import check_pairs, refuse

Sides = tuple[list[Pair], list[Pair]]


class Kind(NamedTuple):
    """One way to train: `trainer` makes TRL's trainer of a job, a tokenizer and rows; `measured` are its metrics.

    `sequences` is how many a row puts through the model: two sides, or one completion.
    """

    command: str
    sequences: int
    measured: tuple[str, ...]
    trainer: Callable[[train.Job, Any, Sides], Any]


def train_on(
    kind: Kind,
    source: str,
    load: Callable[[C, int], Loaded],
    out: Path,
    config: C,
    *,
    given: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train on what `load` gives (by the settled configuration and seed) into `out`, or go on; returns the manifest.

    Raises UsageProblem and PairgenError with the fix, before a model is loaded.
    """
    train_model.check_installed()
    device = train_model.find_device()
    tell = say if device.rank == 0 else _nobody
    with train_folder.open_training(
        out, kind.command, resume=resume, overwrite=overwrite, writes=device.rank == 0
    ) as known:  # fmt: skip
        if known:
            config = resumed(known["config"], config, given)
        hyper = settle(kind.command, config.recipe, dataclasses.asdict(config), full=config.full)
        tokenizer = train_model.load_tokenizer(config.model, config.revision)
        loaded = load(config, hyper.seed)
        train_folder.check_content(known, loaded.content, source)
        if known and (done := train_folder.finished(out)):
            return close(out, config, done, _question(loaded.train), device)
        for line in (*loaded.lines, *check_columns(loaded, drop=config.drop_unfit)):
            tell(line)
        if loaded.template and not config.chat_template_kwargs:
            config = dataclasses.replace(config, chat_template_kwargs=loaded.template)
        sides, dropped, hyper = _fit(kind, loaded, tokenizer, config, hyper)
        for line in _remarks(dropped, loaded, config.model):
            tell(line)
        rank = 0 if config.full else hyper.lora_r
        load_of = Load(0, rank, hyper.lora_save, hyper.max_length, kind.sequences, config.gradient_checkpointing)
        job = plan(config, hyper, device, load_of, out / train_folder.CHECKPOINTS, len(sides[0]), tell)
        if device.rank == 0:
            train_folder.drop_torn(out)
            train_folder.begin(out, kind.command, dataclasses.asdict(config), source, loaded.content)
        result = _trained(kind, job, tokenizer, sides, out)
        data = {"name": loaded.name, "content": loaded.content, "train": len(sides[0]), "test": len(sides[1])}
        manifest = {
            "kind": "training", "command": kind.command,
            "config": {**dataclasses.asdict(config), "model": model_name(config.model)}, "hyper": to_dict(hyper),
            "data": {**data, "left_out": dropped}, "batch": job.batch._asdict(),
            "versions": train_folder.versions(), **result._asdict(),
        }  # fmt: skip
        return close(out, config, manifest, _question(loaded.train), device)


def _trained(kind: Kind, job: train.Job, tokenizer: Any, sides: Sides, out: Path) -> train.Result:
    from transformers import set_seed

    set_seed(job.hyper.seed)  # before the adapter is drawn: TRL would draw it from whatever the process has
    with train_model.quiet():
        trainer = kind.trainer(job, tokenizer, sides)
        resume = train_folder.newest_checkpoint(out)
        result = train.run(trainer, job, kind.command, resume=resume, measured=kind.measured)
        trainer.save_model(str(out / (train_folder.MODEL if job.config.full else train_folder.ADAPTER)))
    return result


def template_of(config: TrainConfig) -> dict[str, Any]:
    """What the chat template is given beside the messages."""
    return loose("--chat-template-kwargs", config.chat_template_kwargs)


def is_first() -> bool:
    """Whether this process is the one that prints and writes."""
    return train_model.rank() == 0


def _nobody(text: str) -> None:
    """Only the first of several processes speaks."""


def _fit(
    kind: Kind, loaded: Loaded, tokenizer: Any, config: TrainConfig, hyper: Hyper
) -> tuple[Sides, dict[str, int], Hyper]:
    """The rows of both sides that can be trained on, what is left out by reason, and a max_length that cuts none."""
    pairs = [*loaded.train, *loaded.test]
    checked = check_pairs(
        pairs, tokenizer, hyper.max_length, broken_prefix=config.allow_broken_prefix,
        chosen_only=kind.sequences == 1, **template_of(config),
    )  # fmt: skip
    unfit = checked.unfit + loaded.unfit
    refuse(unfit, len(pairs) + sum(loaded.unfit.values()), checked.longest, drop=config.drop_unfit)
    fit = [not why for why in checked.reasons]
    count = len(loaded.train)
    train_side = [pair for pair, good in zip(loaded.train, fit[:count], strict=True) if good]
    test_side = [pair for pair, good in zip(loaded.test, fit[count:], strict=True) if good]
    refuse({}, len(train_side), 0, drop=True)
    return (train_side, test_side), dict(unfit), dataclasses.replace(
        hyper, max_length=hyper.max_length or checked.longest
    )  # fmt: skip


def _remarks(dropped: dict[str, int], loaded: Loaded, model: str) -> list[str]:
    lines = []
    if dropped:
        lines.append(f"left out: {', '.join(f'{n} {why}' for why, n in sorted(dropped.items()))}")
    if loaded.models and model_name(model) not in map(model_name, loaded.models):
        lines.append(f"note: the chosen moves are of {', '.join(loaded.models)}, not of {model}")
    return lines


def _question(pairs: Sequence[Pair]) -> list[dict[str, str]]:
    """The prompt whose won reply is the shortest: what the check of a merged model answers."""
    if not pairs:
        return []
    short = min(pairs, key=lambda p: (sum(len(m.content) for m in (*p.prompt, *p.chosen)), p.pair_id))
    return [to_dict(message) for message in short.prompt]


def summary(out: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The summary of a training command; places are paths from here."""
    names = ("steps", "loss_first", "loss_last", "train", "test", "seconds", "stops", "data")
    places = {name: str(out / manifest[name]) if manifest.get(name) else None for name in ("adapter", "merged")}
    return {"out": str(out), **{name: manifest.get(name) for name in names}, **places}
