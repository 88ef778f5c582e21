"""Reads dialogues in the shape of playpen's `interactions` data into episodes: one player's messages, and whose.

A row is `messages` (role, content) with `meta` (game, experiment, task_id, player_name, game_role, model, outcome), as
the Hub has it or as a file of JSON lines, JSON or parquet. A row without an outcome counts as won: somebody chose it.
One without a task_id gets a negative number, which is no instance's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Episode, Message, Move, Outcome, Player
from pipelines import pairfile

HUB = "colab-potsdam/playpen-data"
OUTCOMES: dict[str, Outcome] = {"success": "success", "failure": "lose", "lose": "lose", "aborted": "aborted"}


def read_interactions(source: str) -> list[Episode]:
    """The episodes of a file, of a folder of files, or of a data set on the Hub (its train split).

    Raises UsageProblem and PairgenError with the fix.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in pairfile.SUFFIXES)
        if not files:
            raise UsageProblem(f"{path} holds neither a run nor a file of dialogues ({', '.join(pairfile.SUFFIXES)}).")
        return [episode for file in files for episode in read_interactions(str(file))]
    if path.is_file():
        if path.suffix not in pairfile.SUFFIXES:
            raise UsageProblem(f"{path}: give a file of dialogues that ends in {', '.join(pairfile.SUFFIXES)}.")
        return list(_episodes(pairfile.read_rows(path), str(path), path.stem))
    if source.startswith(("/", ".", "~")) or source.count("/") != 1:
        raise UsageProblem(f"{source} is not there: give a run, a file of dialogues, or a Hub name such as {HUB}.")
    return list(_episodes(_hub_rows(source), source, source))


def _hub_rows(name: str) -> Iterable[Any]:
    import datasets

    try:
        config = "interactions" if "interactions" in datasets.get_dataset_config_names(name) else None
        return datasets.load_dataset(name, config, split="train")  # type: ignore[no-any-return]
    except Exception as error:  # what the Hub and its readers raise is open
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PairgenError(
            f"{name} cannot be loaded from the Hub ({first}): check the name, or download it and give its file."
        ) from None


def _episodes(rows: Iterable[Any], where: str, source: str) -> Iterator[Episode]:
    """Rows that repeat an instance are its samples, numbered in their order."""
    seen: Counter[tuple[str, str, int]] = Counter()
    for number, row in enumerate(rows, 1):
        try:
            meta = row.get("meta") or {}
            key = (str(meta.get("game") or ""), str(meta.get("experiment") or ""), int(meta.get("task_id", -number)))
            messages = merged(Message(str(m["role"]), str(m["content"])) for m in row["messages"])
            outcome = OUTCOMES[str(meta.get("outcome") or "success")]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PairgenError(
                f"{where}: row {number} is no dialogue ({type(error).__name__}: {error}): each row needs messages with "
                "role and content, and may have meta with game, experiment, task_id and outcome."
            ) from None
        name, role, model = (str(meta.get(k) or "") for k in ("player_name", "game_role", "model"))
        player = Player(name, role, model)
        yield Episode(
            *key, seen[key], 0, outcome, None, (player,), tuple(_moves(messages, player)), None, "", "",
            f"{source}#{number}",
        )  # fmt: skip
        seen[key] += 1


def merged(messages: Iterable[Message]) -> list[Message]:
    """Messages of one role in a row as one, as a backend merges them before the model sees them."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role != "assistant":
            joined[-1] = Message(message.role, f"{joined[-1].content}\n\n{message.content}")
        else:
            joined.append(message)
    return joined


def _moves(messages: list[Message], player: Player) -> Iterator[Move]:
    turns = [i for i, message in enumerate(messages) if message.role == "assistant"]
    for index, i in enumerate(turns):
        reply = messages[i].content
        prompt = tuple(messages[:i])
        yield Move(
            index, player.name, player.role, player.model, prompt, reply, reply, "unknown", -1, -1, -1, (), ""
        )  # fmt: skip
