"""DPO as a person asks for it: pairs checked, memory and batch said, trained through TRL, merged, accounted for."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pairgen import store
from pairgen.console import say
from pairgen.engines.arguments import loose
from pairgen.records import Pair, to_dict
from pipelines import train, train_folder, train_model
from pipelines.recipes import Hyper, settle
from pipelines.train_config import DpoConfig, resumed
from pipelines.train_end import close, model_name
from pipelines.train_memory import Load
from pipelines.train_pairs import Loaded, check_columns, load_pairs, rows_of
from pipelines.train_plan import plan
from pipelines.train_rows import check_pairs, refuse

MEASURED = ("rewards/margins", "rewards/accuracies")


def train_dpo(
    source: str,
    out: Path,
    config: DpoConfig,
    *,
    given: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train on the pairs of `source` into the folder `out` (or go on with it); returns the manifest.

    Raises UsageProblem and PairgenError with the fix, before a model is loaded.
    """
    train_model.check_installed()
    device = train_model.find_device()
    with train_folder.open_training(out, "dpo", resume=resume, overwrite=overwrite, writes=device.rank == 0) as known:
        if known:
            config = resumed(known["config"], config, given)
        hyper = settle("dpo", config.recipe, dataclasses.asdict(config), full=config.full)
        tokenizer = train_model.load_tokenizer(config.model, config.revision)
        loaded = load_pairs(source)
        train_folder.check_content(known, loaded.content, source)
        done = train_folder.finished(out) if known else {}
        if done:
            return close(out, config, done, _question(loaded.train), device)
        tell = say if device.rank == 0 else _nothing
        for line in (*loaded.lines, *check_columns(loaded, drop=config.drop_unfit)):
            tell(line)
        config = _with_template(config, loaded)
        sides, dropped, hyper = _fit(loaded, tokenizer, config, hyper)
        if dropped:
            tell(f"left out: {', '.join(f'{n} {why}' for why, n in sorted(dropped.items()))}")
        tell(_model_note(loaded, config.model))
        load = Load(
            0, 0 if config.full else hyper.lora_r, hyper.lora_save, hyper.max_length, 2, config.gradient_checkpointing
        )
        job = plan(config, hyper, device, load, out / train_folder.CHECKPOINTS, len(sides[0]), tell)
        if device.rank == 0:
            train_folder.drop_torn(out)
            train_folder.begin(out, "dpo", dataclasses.asdict(config), source, loaded.content)
        result = _learn(job, tokenizer, sides, out)
        manifest = {
            "kind": "training", "command": "dpo", "config": to_public(config), "hyper": to_dict(hyper),
            "data": {
                "name": loaded.name, "content": loaded.content, "train": len(sides[0]), "test": len(sides[1]),
                "left_out": dict(dropped),
            },
            "batch": job.batch._asdict(), "versions": train_folder.versions(), **result._asdict(),
        }  # fmt: skip
        return close(out, config, manifest, _question(loaded.train), device)


def to_public(config: DpoConfig) -> dict[str, Any]:
    """The configuration, a model in a local folder by that folder's name."""
    return {**dataclasses.asdict(config), "model": model_name(config.model)}


def _nothing(text: str) -> None:
    pass


def _with_template(config: DpoConfig, loaded: Loaded) -> DpoConfig:
    """What the chat template is given: what was said, else what the run used."""
    if config.chat_template_kwargs or not loaded.template:
        return config
    return dataclasses.replace(config, chat_template_kwargs=loaded.template)


def _model_note(loaded: Loaded, model: str) -> str:
    said = ", ".join(loaded.models)
    if not said or model_name(model) in (model_name(m) for m in loaded.models):
        return "the chosen moves are this model's own" if said else "the set does not say whose moves it holds"
    return f"note: the chosen moves are of {said}, so they are not on-policy for {model}"


def _fit(
    loaded: Loaded, tokenizer: Any, config: DpoConfig, hyper: Hyper
) -> tuple[tuple[list[Pair], list[Pair]], dict[str, int], Hyper]:
    """The pairs of both sides that can be trained on, what is left out by reason, and a max_length that cuts none."""
    pairs = [*loaded.train, *loaded.test]
    template = loose("--chat-template-kwargs", config.chat_template_kwargs)
    checked = check_pairs(
        pairs, tokenizer, hyper.max_length, broken_prefix=config.allow_broken_prefix, **template
    )  # fmt: skip
    unfit = checked.unfit + loaded.unfit
    refuse(unfit, len(pairs) + sum(loaded.unfit.values()), checked.longest, drop=config.drop_unfit)
    kept = [pair for pair, why in zip(pairs, checked.reasons, strict=True) if not why]
    tests = {pair.pair_id for pair in loaded.test}
    sides = [p for p in kept if p.pair_id not in tests], [p for p in kept if p.pair_id in tests]
    return sides, dict(unfit), dataclasses.replace(hyper, max_length=hyper.max_length or checked.longest)


def _learn(job: train.Job, tokenizer: Any, sides: Sequence[Sequence[Pair]], out: Path) -> train.Result:
    from datasets import Dataset
    from trl import DPOConfig as Arguments
    from trl import DPOTrainer

    train.prepare(job.hyper.seed)
    template = loose("--chat-template-kwargs", job.config.chat_template_kwargs)
    extra = {"chat_template_kwargs": template} if template else {}
    data = [Dataset.from_list([{**row, **extra} for row in rows_of(side)]) for side in sides]
    dtype = train_model.weights_dtype(job.config.dtype, job.device, full=job.config.full)
    # a full training would hold its reference beside it: its log-probabilities are computed beforehand instead
    arguments = Arguments(
        **train.arguments(job), beta=job.hyper.beta, loss_type=job.hyper.loss_type.split(","),
        precompute_ref_log_probs=job.config.full,
    )  # fmt: skip
    trainer = DPOTrainer(
        model=train_model.load_model(job.config.model, job.config.revision, dtype), args=arguments,
        train_dataset=data[0], eval_dataset=data[1] if len(data[1]) else None, processing_class=tokenizer,
        peft_config=None if job.config.full else train.adapter_of(job.hyper),
    )  # fmt: skip
    result = train.run(trainer, job, "dpo", resume=train_folder.newest_checkpoint(out), measured=MEASURED)
    trainer.save_model(str(out / (train_folder.MODEL if job.config.full else train_folder.ADAPTER)))
    return result


def _question(pairs: Sequence[Pair]) -> list[dict[str, str]]:
    """The prompt whose won reply is the shortest: what the check of a merged model answers."""
    if not pairs:
        return []
    short = min(pairs, key=lambda p: (sum(len(m.content) for m in (*p.prompt, *p.chosen)), p.pair_id))
    return [{"role": m.role, "content": m.content} for m in short.prompt]


def summary(out: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The summary of the command."""
    names = ("steps", "loss_first", "loss_last", "train", "test", "seconds", "stops", "data")
    places = {name: str(out / manifest[name]) if manifest.get(name) else None for name in ("adapter", "merged")}
    said = {name: manifest.get(name) for name in names}
    return {"out": str(out), **said, **places, "manifest": str(out / store.MANIFEST)}


def lines(out: Path, manifest: dict[str, Any]) -> list[str]:
    """What the command prints."""
    data, test = manifest["data"], manifest["test"]
    told = [
        f"loss {manifest['loss_first']:.3f} at the first step, {manifest['loss_last']:.3f} over the last tenth",
        f"margin {manifest['train']['margin']:.3f}, accuracy {manifest['train']['accuracy']:.1%} on train rows then",
    ]
    if test:
        told.append(f"margin {test['margin']:.3f}, accuracy {test['accuracy']:.1%} on {data['test']} test rows")
    told.append(f"{manifest['steps']} steps in {manifest['seconds']:.0f} s: {out}")
    if not manifest.get("merged"):
        adapter, merged = shlex.quote(str(out / manifest["adapter"])), shlex.quote(f"{out}-merged")
        told.append(f"next: pairgen merge {adapter} --out {merged}")
    return told
