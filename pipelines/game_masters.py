"""The game masters that a pair set is made with: verdicts on pairs, and what evaluation instances ask and hold.

Finds the games, keeps one game server, and keeps verdicts beside the run that they are about. Shows progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairgen.clem.client import DEMO_GAMES, GameServer
from pairgen.console import progress, say
from pairgen.records import Episode, InstanceKey, Pair
from pairgen.store import CONFIG, read_json
from pipelines import verify
from pipelines.decontaminate import EvalSplit
from pipelines.eval_render import render
from pipelines.screen import Prompted
from pipelines.verdicts import Try, Verdict, tries_of


class GameMasters:
    """Asks the game masters about pairs, as often as it is called; says once which games are not to be had.

    `homes` has the run of each episode: there its verdicts are kept, whatever other runs are taken along. The game
    server starts when it is first needed and serves until the `with` block ends.
    """

    def __init__(self, homes: Mapping[str, Path], episodes: Sequence[Episode], clembench: Path | None):
        self._homes, self._episodes = homes, {e.episode_id: e for e in episodes}
        self._loop, self._stack = asyncio.new_event_loop(), contextlib.AsyncExitStack()
        self._server: GameServer | None = None
        self._names: tuple[str, ...] = ()
        self._found: dict[str, Any] = {}
        self._notebooks: dict[tuple[Path, str], verify.Verdicts] = {}
        self._told: set[str] = set()
        runs = dict.fromkeys(homes.values())
        saved = [read_json(run / CONFIG) for run in runs if (run / CONFIG).exists()]
        played_from = [(entry.get("config") or {}).get("clembench") for entry in saved]
        found = [clembench and str(clembench.resolve()), *played_from]
        self._clembench = next((folder for folder in found if folder and Path(folder).is_dir()), None)

    @property
    def may_find_games(self) -> bool:
        """Whether any game that was played could be here."""
        return self._may_find({e.game for e in self._episodes.values()})

    def _may_find(self, names: Collection[str]) -> bool:
        return bool(self._clembench or places_of_games(Path.cwd(), names))

    def __call__(self, pairs: Sequence[Pair]) -> Mapping[Try, Verdict]:
        names = sorted({pair.game for pair in pairs})
        if self._may_find(names):
            return self._loop.run_until_complete(self._ask(pairs, names))
        self._say_missing(names, {})
        return {}

    def with_contents(self, evaluation: EvalSplit) -> EvalSplit:
        """The split with the content of those of its instances that are of a played game and here."""
        names = sorted({e.game for e in self._episodes.values()} & {key.game for key in evaluation.keys})
        if not names or not self._may_find(names):
            return evaluation
        found = self._loop.run_until_complete(self._find(names))
        here = {
            InstanceKey(game["game"], experiment, task_id): content
            for game in found["games"]
            for experiment, task_id, content in game["instances"]
        }
        known = {content: key for key, content in sorted(here.items(), reverse=True) if key in evaluation.keys}
        return evaluation._replace(contents={**known, **evaluation.contents})

    async def _find(self, names: Sequence[str]) -> dict[str, Any]:
        return await self._games(await self._serve(), names)

    def first_prompts(self, keys: Sequence[InstanceKey]) -> Prompted:
        """What these instances ask, by their game masters."""
        names = sorted({key.game for key in keys})
        if not self._may_find(names):
            return Prompted((), dict.fromkeys(keys, "the games are not here"))
        return self._loop.run_until_complete(self._render(keys, names))

    async def _render(self, keys: Sequence[InstanceKey], names: Sequence[str]) -> Prompted:
        server = await self._serve()
        found = await self._games(server, names)
        with progress(len(keys), "reading evaluation instances", "instance") as bar:
            return Prompted(*await render(server, found["games"], keys, lambda _: bar.update()))

    def __enter__(self) -> GameMasters:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _close(self) -> None:
        for task in (tasks := asyncio.all_tasks() - {asyncio.current_task()}):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stack.aclose()

    async def _ask(self, pairs: Sequence[Pair], names: Sequence[str]) -> Mapping[Try, Verdict]:
        server = await self._serve()
        found = await self._games(server, names)
        wanted = tries_of(pairs)
        notebooks = {name: self._notebook(self._homes[name], found["edition"]) for name in wanted}
        known = {t: said for notebook in notebooks.values() for t, said in notebook.known.items()}
        owed = verify.owed(wanted, known)
        specs = {game["game"]: game["spec"] for game in found["games"]}
        self._say_missing(names, specs)
        episodes = [self._episodes[name] for name in owed if self._episodes[name].game in specs]
        if not episodes:
            return known
        whose = {pair.move_id: pair.episode_id for pair in pairs}
        with progress(len(episodes), "verifying", "episode") as bar:

            def note(verdicts: dict[Try, Verdict]) -> None:
                known.update(verdicts)
                notebooks[whose[next(iter(verdicts))[0]]].add(verdicts)
                bar.update()

            await verify.ask_referee(server, specs, episodes, owed, note)
        return known

    async def _serve(self) -> GameServer:
        if self._server is None:
            logs = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pairgen-"))
            self._server = await self._stack.enter_async_context(GameServer(Path(logs)))
        return self._server

    def _notebook(self, run: Path, edition: str) -> verify.Verdicts:
        if (run, edition) not in self._notebooks:
            self._notebooks[run, edition] = verify.Verdicts(run / "verdicts.jsonl", edition)
        return self._notebooks[run, edition]

    async def _games(self, server: GameServer, names: Sequence[str]) -> dict[str, Any]:
        if set(names) <= set(self._names):
            return self._found
        self._found = await server.ask(
            op="catalog", clembench=self._clembench, cwd=str(Path.cwd()), selectors=list(names), lenient=True
        )
        self._names = tuple(names)
        return self._found

    def _say_missing(self, names: Sequence[str], specs: Mapping[str, Any]) -> None:
        missing = [name for name in names if name not in specs and name not in self._told]
        self._told.update(missing)
        if missing:
            say(
                f"not verified, since the games are not here: {', '.join(missing)} "
                "(give --clembench DIR, the checkout that they were played from)"
            )


def places_of_games(cwd: Path, names: Collection[str]) -> bool:
    """Whether a game could be found at all without a checkout being named: importing clemcore to see takes seconds."""
    demo = {path.name for path in DEMO_GAMES.iterdir()}
    here = (pattern for depth in range(4) for pattern in cwd.glob("*/" * depth + "clemgame.json"))
    return bool(
        demo & set(names) or os.environ.get("CLEMBENCH_HOME") or (cwd / "game_registry.json").exists() or any(here)
    )
