"""Verify: replays episodes in game workers and puts both sides of every pair to the game's own referee.

Answers are kept in a file beside the run, so that verifying can be stopped and gone on with.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pairgen.clem.client import GameServer, GameWorker, WorkerDied
from pairgen.records import Episode, move_id, to_dict
from pipelines.notebook import Notebook
from pipelines.verdicts import Try, Verdict

CHUNK = 25
"""Episodes that one worker process replays before another game's may have its place."""


class Verdicts:
    """Verdicts that were given before, in a file beside the run; a torn last line is asked again.

    `edition` names games and framework: what another edition said does not count.
    """

    def __init__(self, path: Path, edition: str):
        self._notebook, self._edition = Notebook(path), edition
        self.known: dict[Try, Verdict] = {
            (line[0], line[1]): Verdict(line[2], line[3])
            for line in self._notebook.lines
            if len(line) == 5 and line[4] == edition
        }

    def add(self, verdicts: Mapping[Try, Verdict]) -> None:
        """Remember what the game master said; what could not be verified is asked again next time."""
        self.known.update(verdicts)
        self._notebook.add(
            [move, text, v.verdict, v.reason, self._edition]
            for (move, text), v in verdicts.items()
            if v.accepted or v.violation
        )


def owed(tries: Mapping[str, set[Try]], known: Mapping[Try, Verdict]) -> dict[str, set[Try]]:
    """What is left to try, by episode."""
    left = {episode: {t for t in wanted if t not in known} for episode, wanted in tries.items()}
    return {episode: wanted for episode, wanted in left.items() if wanted}


async def ask_referee(
    server: GameServer,
    specs: Mapping[str, dict[str, Any]],
    episodes: Iterable[Episode],
    tries: Mapping[str, set[Try]],
    on_verdicts: Callable[[dict[Try, Verdict]], None],
    *,
    lanes: int = 0,
) -> None:
    """Replay each episode once and try in it all that is to be tried, in `lanes` worker processes (0: one a core).

    Episodes of games without a spec are left out. `on_verdicts` is called with the verdicts of each episode.
    """
    by_game: dict[str, list[Episode]] = defaultdict(list)
    for episode in sorted(episodes, key=lambda e: (e.key, e.source)):
        if episode.game in specs and tries.get(episode.episode_id):
            by_game[episode.game].append(episode)
    chunks = [(game, found[i : i + CHUNK]) for game, found in by_game.items() for i in range(0, len(found), CHUNK)]
    chunks.sort(key=lambda chunk: sum(len(e.moves) for e in chunk[1]))

    async def lane() -> None:
        while chunks:
            game, chunk = chunks.pop()
            referee = Referee(server, specs[game])
            for episode in chunk:
                on_verdicts(await referee.verdicts(episode, tries[episode.episode_id]))
            await referee.close()

    await asyncio.gather(*[lane() for _ in range(lanes or os.cpu_count() or 1)])


class Referee:
    """A worker process for one game; a new one when it dies."""

    def __init__(self, server: GameServer, spec: dict[str, Any]):
        self._server, self._spec = server, spec
        self._worker: GameWorker | None = None
        self._problem = ""

    async def verdicts(self, episode: Episode, tries: set[Try]) -> dict[Try, Verdict]:
        """What the game master says to each of `tries`, at their moves of the replayed episode."""
        try:
            worker = await self._load()
            if worker is None:
                return dict.fromkeys(tries, Verdict("unverifiable: the game cannot be loaded", self._problem))
            return await _replay(worker, episode, tries)
        except WorkerDied:
            return dict.fromkeys(tries, Verdict("unverifiable: the game process ended", ""))

    async def _load(self) -> GameWorker | None:
        if self._worker is not None and self._worker.alive:
            return self._worker
        if not self._problem:
            self._worker = await self._server.worker()
            loaded = await self._worker.ask("", op="load", spec=self._spec)
            self._problem = loaded.get("problem", "")
        return None if self._problem else self._worker

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()


async def _replay(worker: GameWorker, episode: Episode, tries: set[Try]) -> dict[Try, Verdict]:
    places = {move_id(episode.episode_id, m.index): i for i, m in enumerate(episode.moves)}
    numbered = dict(enumerate(sorted(tries, key=lambda t: (places[t[0]], t[1] is not None, t[1] or ""))))
    answer = await worker.ask(
        episode.episode_id, op="verify", experiment=episode.experiment, task_id=episode.task_id,
        seed=max(0, episode.seed), instance_hash=episode.instance_hash,
        moves=[{"player": m.player, "prompt": to_dict(m.prompt), "reply": m.reply} for m in episode.moves],
        tries=[{"id": str(n), "move": places[move], "text": text} for n, (move, text) in numbered.items()],
    )  # fmt: skip
    return {numbered[int(n)]: Verdict(*said) for n, said in answer["verdicts"].items()}
