"""Reads evaluation instances: from key files, from clembench results, from a split on the Hub.

Fails closed: what cannot be read, or names no instance, is an error that says how to go on. Takes nothing out.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pairgen.clem.layout import EXPERIMENT, INSTANCE, INTERACTIONS, Unreadable, find_episodes, read_episode
from pairgen.console import progress
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import InstanceKey, content_id, instance_hash
from pipelines.decontaminate import NO_EVAL_SPLIT, EvalSource, EvalSplit
from pipelines.first_prompts import EvalPrompt, eval_prompts
from pipelines.recorded import take

DEFAULT_SPLIT = "colab-potsdam/playpen-data:instances:validation"
COLUMNS = ("game", "experiment", "task_id")
HUB_TIMEOUT_S = 10.0
WAYS_OUT = (
    "give --eval-keys FILE or --eval-results DIR, or say --no-eval-split if the pairs are never to be judged on it"
)


class HubSplit(NamedTuple):
    """`REPO[:CONFIG[:SPLIT]][@REVISION]`, as `--eval-split` takes it."""

    repo: str
    config: str
    split: str
    revision: str | None


def read_eval_split(*, keys: Sequence[Path], split: str, results: Sequence[Path], none: bool) -> EvalSplit:
    """Everything that is not to be trained on; without any source given, the playpen split from the Hub.

    Raises UsageProblem when `none` comes with a source, PairgenError when a source cannot be read.
    """
    if none and (keys or split or results):
        raise UsageProblem("--no-eval-split goes with no other evaluation source: leave out one of them.")
    if none:
        return NO_EVAL_SPLIT
    parts = [read_keys(path) for path in keys] + [read_results(folder) for folder in results]
    if split or not parts:
        parts.append(read_hub(split or DEFAULT_SPLIT))
    return EvalSplit(
        frozenset().union(*(p.keys for p in parts)),
        {content: key for p in parts for content, key in p.contents.items()},
        tuple(s for p in parts for s in p.sources),
        tuple(sorted({prompt for p in parts for prompt in p.prompts})),
    )


def read_keys(path: Path) -> EvalSplit:
    """A file of instance keys with the columns game, experiment and task_id: .jsonl, .csv or .parquet."""
    readers = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    if path.suffix not in readers:
        raise UsageProblem(f"--eval-keys {path}: give a .jsonl, .csv or .parquet file with {', '.join(COLUMNS)}.")
    try:
        keys = _keys_of(readers[path.suffix](path), f"--eval-keys {path}")
    except (OSError, ValueError, csv.Error) as error:
        raise PairgenError(
            f"--eval-keys {path} cannot be read ({_short(error)}): mend the file, or give another."
        ) from None
    return _source("keys", path.name, keys)


def read_results(folder: Path) -> EvalSplit:
    """The instances of every episode in a clembench results folder: by key, by content and by first prompt."""
    episodes, unfinished = find_episodes(folder)
    if not episodes:
        raise PairgenError(f"--eval-results {folder} holds no {INTERACTIONS}: give a clembench results folder.")
    with progress(len(episodes) + len(unfinished), "reading --eval-results", "episode") as bar:
        found = []
        for path in (*episodes, *unfinished):
            found.append(_instance_of(path))
            bar.update()
    contents = {name: key for key, name, _ in sorted(found, reverse=True) if name}
    prompts = sorted({prompt for _, _, prompts in found for prompt in prompts})
    return _source("results", folder.resolve().name, {key for key, _, _ in found}, contents, prompts)


def _instance_of(folder: Path) -> tuple[InstanceKey, str, list[EvalPrompt]]:
    """The instance that an episode folder is of: its key, its content where that is there, and its first prompts.

    Of an episode that was begun and never ended, game and experiment stand in the folders above it alone.
    """
    try:
        if (folder / INTERACTIONS).exists():
            episode = read_episode(folder)
            game, experiment, task_id, instance = episode.game, episode.experiment, episode.task_id, episode.instance
            prompts = eval_prompts([take(episode, 0, "").episode])
        else:
            prompts = []
            instance = json.loads((folder / INSTANCE).read_bytes())
            about = json.loads((folder.parent / EXPERIMENT).read_bytes())
            game, experiment, task_id = folder.parent.parent.name, about["name"], instance["game_id"]
        return _key(game, experiment, task_id), instance_hash(game, instance) if instance else "", prompts
    except (OSError, ValueError, KeyError, TypeError, Unreadable) as error:
        raise PairgenError(
            f"--eval-results: {folder} does not say which instance it is ({_short(error)}): take that episode out, "
            "or give the keys with --eval-keys."
        ) from None


def read_hub(text: str) -> EvalSplit:
    """A split of a Hub data set, with the revision that was read. Offline, a copy in the cache will do."""
    where = parse_hub_split(text)
    try:
        revision, rows = _load(where)
    except Exception as error:  # whatever goes wrong on the way, the split is not known
        raise PairgenError(
            f"The evaluation split {text} cannot be read from the Hub ({_short(error)}), and without it evaluation "
            f"instances could get into the pairs: {WAYS_OUT}."
        ) from None
    keys = _keys_of(rows, f"The evaluation split {text}")
    source = EvalSource("hub", f"{where.repo}:{where.config}:{where.split}", revision, len(keys), 0)
    return EvalSplit(frozenset(keys), {}, (source,))


def parse_hub_split(text: str) -> HubSplit:
    """Read `REPO[:CONFIG[:SPLIT]][@REVISION]`; what is left out is as in the default. Raises UsageProblem."""
    name, _, revision = text.partition("@")
    repo, *rest = name.split(":")
    if not repo or len(rest) > 2 or not all(rest) or text.endswith("@"):
        raise UsageProblem(f"--eval-split {text}: write it as REPO:CONFIG:SPLIT@REVISION, such as {DEFAULT_SPLIT}.")
    config, split = [*rest, *DEFAULT_SPLIT.split(":")[1 + len(rest) :]]
    return HubSplit(repo, config, split, revision or None)


def _load(where: HubSplit) -> tuple[str, Iterable[dict[str, Any]]]:
    import datasets
    import huggingface_hub
    from huggingface_hub.errors import OfflineModeIsEnabled

    once = datasets.DownloadConfig(max_retries=0)
    try:
        info = huggingface_hub.HfApi().dataset_info(where.repo, revision=where.revision, timeout=HUB_TIMEOUT_S)
        revision = str(info.sha)
    except OfflineModeIsEnabled:
        builder = datasets.load_dataset_builder(where.repo, where.config, revision=where.revision, download_config=once)
        revision = str(builder.hash)
        if where.revision not in (None, revision):
            raise LookupError(f"offline, and the cache holds revision {revision} alone") from None
        return revision, builder.as_dataset(split=where.split)
    return revision, datasets.load_dataset(
        where.repo, where.config, split=where.split, revision=revision, download_config=once
    )


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        if line.strip():
            yield json.loads(line)


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        yield from csv.DictReader(handle)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    yield from pq.read_table(path).to_pylist()


def _keys_of(rows: Iterable[dict[str, Any]], what: str) -> set[InstanceKey]:
    keys = {_row_key(row, number, what) for number, row in enumerate(rows, 1)}
    if not keys:
        raise PairgenError(f"{what} names no instance: {WAYS_OUT}.")
    return keys


def _row_key(row: dict[str, Any], number: int, what: str) -> InstanceKey:
    try:
        return _key(*(row[column] for column in COLUMNS))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise PairgenError(
            f"{what}: row {number} does not name an instance ({_short(error)}): each row needs "
            "game, experiment and task_id (a whole number)."
        ) from None


def _key(game: Any, experiment: Any, task_id: Any) -> InstanceKey:
    """An instance key from what files hold: numbers may come as text or as whole floats, experiments as numbers."""
    if isinstance(task_id, bool) or isinstance(experiment, (bool, float)) or float(task_id) != int(float(task_id)):
        raise ValueError(f"task_id {task_id!r}")
    if not isinstance(game, str) or not game or experiment is None or not str(experiment):
        raise ValueError(f"game {game!r}, experiment {experiment!r}")
    return InstanceKey(game, str(experiment), int(float(task_id)))


def _source(
    kind: str, name: str, keys: set[InstanceKey], contents: Mapping[str, InstanceKey] = MappingProxyType({}),
    prompts: Sequence[EvalPrompt] = (),
) -> EvalSplit:  # fmt: skip
    """Files have no revision: the hash of what they name stands for it."""
    revision = content_id(kind, sorted(keys), sorted(contents))
    source = EvalSource(kind, name, revision, len(keys), len(contents))
    return EvalSplit(frozenset(keys), contents, (source,), tuple(prompts))


def _short(error: Exception) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:200]}" if first else type(error).__name__
