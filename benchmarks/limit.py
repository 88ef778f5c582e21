"""How near a rollout comes to the engine's own limit on recorded play, with the game masters in the loop.

Recorded runs (`pairgen import`) are played again: each request goes to vLLM with its whole prompt, which generates
exactly as many tokens as the recorded reply had, and the game master is handed the recorded reply. The very same
requests are then made in lock-step rounds (a barrier a round, as batch runners do it) and all at once with no
dependency between them, which is the limit; both without game masters, so that the comparison favours them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from pairgen.clem.client import GameServer
from pairgen.console import progress, say, table
from pairgen.engines import Completion, EngineOptions, Request, Sampling
from pairgen.engines.vllm_ import VllmEngine
from pairgen.records import Episode, EpisodeKey, InstanceKey
from pairgen.store import Journal, stream_episodes
from pipelines.plan import Work
from pipelines.rollout import Tally, play_all
from pipelines.workers import Setting

MOST_TOKENS = 300
PASSES = ("rollout", "lock-step", "limit")


class Turn(NamedTuple):
    """One request as it was made: the prompt's token ids and how many tokens to generate."""

    ids: list[int]
    tokens: int


class Replay:
    """An engine that has vLLM do the work of every recorded reply and then answers with the recorded text."""

    name = "replay"

    def __init__(self, engine: VllmEngine, replies: dict[str, list[str]]):
        self._engine, self._replies = engine, replies
        self.model = engine.model
        self.turns: dict[str, list[Turn]] = defaultdict(list)
        self._told: Counter[str] = Counter()

    async def start(self) -> None:
        await self._engine.start()

    async def generate(self, request: Request) -> Completion:
        """A game that goes on after the recording ended is told its last reply again."""
        told = self._replies[request.session]
        text = told[min(self._told[request.session], len(told) - 1)]
        self._told[request.session] += 1
        chat = self._engine._chat
        assert chat is not None
        ids = await chat.to_ids(request)
        tokens = max(1, min(len(chat.tokenizer(text, add_special_tokens=False)["input_ids"]), MOST_TOKENS))
        exactly = Sampling(temperature=0.0, max_tokens=tokens, min_tokens=tokens)
        made = await self._engine.generate(Request(request.messages, exactly, request.session))
        self.turns[request.session].append(Turn(ids, tokens))  # what does not fit the context is in no scheme
        return Completion(text, "stop", made.prompt_tokens, made.completion_tokens, made.cached_tokens)

    async def close(self) -> None:
        await self._engine.close()


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--clembench", required=True, type=click.Path(exists=True), help="The games' checkout.")
@click.option("--model", required=True)
@click.option("--games", default="", help="These alone, separated by commas [all that can be set up].")
@click.option("--episodes", default=1106, show_default=True)
@click.option("--concurrency", default=512, show_default=True)
@click.option("--repeat", default=3, show_default=True)
@click.option("--passes", default=",".join(PASSES), show_default=True)
@click.option("--max-model-len", default=4096, show_default=True)
@click.option("--engine-arg", multiple=True, help="As in pairgen rollout, such as load_format=dummy.")
def main(runs: tuple[Path, ...], passes: str, repeat: int, **options: Any) -> None:
    """Measure and print."""
    asyncio.run(measure(runs, tuple(passes.split(",")), repeat, **options))


async def measure(
    runs: Sequence[Path], passes: Sequence[str], repeat: int, *, clembench: str, model: str, games: str, episodes: int,
    concurrency: int, max_model_len: int, engine_arg: tuple[str, ...],
) -> None:  # fmt: skip
    engine = VllmEngine(
        EngineOptions("vllm", model, concurrency=concurrency, max_model_len=max_model_len, engine_args=engine_arg)
    )
    taken: dict[str, list[float]] = defaultdict(list)
    await engine.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            async with GameServer(Path(folder) / "logs") as server:
                found = await catalog(server, clembench, games)
                plan, replies = replay_plan(runs, found, episodes)
                say(f"{len(plan)} episodes of {len({w.key.game for w in plan})} games")
                for number in range(repeat):
                    place = Path(folder) / str(number)
                    turns = await one_round(server, engine, found, plan, replies, place, concurrency, passes, taken)
    finally:
        await engine.close()
    report(taken, len(plan), sum(map(len, turns)), sum(t.tokens for e in turns for t in e), concurrency)


async def one_round(
    server: GameServer, engine: VllmEngine, found: list[dict[str, Any]], plan: list[Work],
    replies: dict[str, list[str]], folder: Path, concurrency: int, passes: Sequence[str], taken: dict[str, list[float]],
) -> list[list[Turn]]:  # fmt: skip
    """Each scheme once, from an empty prefix cache; adds its seconds to `taken` and returns the requests it made."""
    replay = Replay(engine, replies)
    await engine._llm.reset_prefix_cache()
    tally = await rollout(server, replay, found, plan, folder, concurrency)
    taken["rollout"].append(tally.seconds)
    rate, cached = tally.completion_tokens / tally.seconds, tally.cached_tokens / max(1, tally.prompt_tokens)
    say(f"rollout {tally.seconds:.1f} s, {rate:.0f} output tokens/s, {cached:.0%} of prompt tokens cached")
    turns = list(replay.turns.values())
    for name, scheme in (("lock-step", lock_step), ("limit", all_at_once)):
        if name in passes:
            await engine._llm.reset_prefix_cache()
            started = time.monotonic()
            await scheme(engine, turns)
            taken[name].append(time.monotonic() - started)
            say(f"{name} {taken[name][-1]:.1f} s")
    return turns


async def catalog(server: GameServer, clembench: str, games: str) -> list[dict[str, Any]]:
    """The games whose first instance can be set up here."""
    worker = await server.worker()
    answer = await worker.ask(
        "", op="catalog", clembench=str(Path(clembench).resolve()), cwd=str(Path.cwd()), lenient=True,
        selectors=games.split(",") if games else [],
    )  # fmt: skip
    await worker.close()
    ready = []
    for game in answer["games"]:
        worker = await server.worker()
        loaded = await worker.ask("", op="load", spec=game["spec"])
        if "problem" not in loaded and game["instances"]:
            experiment, task_id, _ = game["instances"][0]
            step = await worker.ask("w", op="begin", experiment=experiment, task_id=task_id, seed=1, folder="m")
            if step["op"] == "ask":
                ready.append(game)
            else:
                say(f"{game['game']} is left out: {step.get('message', step['op'])}")
        await worker.close()
    return ready


def replay_plan(
    runs: Sequence[Path], games: Sequence[dict[str, Any]], most: int
) -> tuple[list[Work], dict[str, list[str]]]:
    """The episodes to play and the recorded replies of each; plays of one instance are numbered as samples."""
    known = {InstanceKey(game["game"], row[0], row[1]) for game in games for row in game["instances"]}
    recorded: list[Episode] = [
        episode for run in runs for episode in stream_episodes(run) if episode.moves and episode.key.instance in known
    ]
    random.Random(0).shuffle(recorded)
    counts: dict[InstanceKey, itertools.count[int]] = defaultdict(itertools.count)
    plan, replies = [], {}
    taken = sorted(itertools.islice(itertools.cycle(recorded), most), key=lambda episode: episode.key.instance)
    for episode in taken:
        key = EpisodeKey(*episode.key.instance, next(counts[episode.key.instance]))
        work = Work(key, max(0, episode.seed), f"m.sample{key.sample}")
        plan.append(work)
        replies[work.id] = [move.reply for move in episode.moves]
    return plan, replies


async def rollout(
    server: GameServer, replay: Replay, games: list[dict[str, Any]], plan: list[Work], folder: Path, concurrency: int
) -> Tally:
    """As `pairgen rollout` plays: workers, journal, clemcore's own files and scores."""
    folder.mkdir()
    journal, bar = Journal(folder), progress(len(plan), "rollout", "episode")
    try:
        return await play_all(
            server, replay, games, plan, Setting("m", Sampling(), folder / "clem"), journal, concurrency=concurrency,
            on_episode=lambda *_: bar.update(),
        )  # fmt: skip
    finally:
        bar.close()
        journal.close()


async def lock_step(engine: VllmEngine, episodes: list[list[Turn]]) -> None:
    for number in range(max(map(len, episodes))):
        await asyncio.gather(*[bare(engine, turns[number]) for turns in episodes if len(turns) > number])


async def all_at_once(engine: VllmEngine, episodes: list[list[Turn]]) -> None:
    await asyncio.gather(*[bare(engine, turn) for turns in episodes for turn in turns])


NUMBERS: Iterator[int] = itertools.count()


async def bare(engine: VllmEngine, turn: Turn) -> None:
    """One request to vLLM and nothing around it: the prompt is tokenized already."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    params = SamplingParams(
        temperature=0.0, max_tokens=turn.tokens, min_tokens=turn.tokens, ignore_eos=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )  # fmt: skip
    async for _ in engine._llm.generate({"prompt_token_ids": turn.ids}, params, f"bare-{next(NUMBERS)}"):
        pass


def report(taken: dict[str, list[float]], episodes: int, turns: int, tokens: int, concurrency: int) -> None:
    limit = statistics.median(taken["limit"]) if "limit" in taken else None
    ours = statistics.median(taken["rollout"])
    rows = []
    for name, times in taken.items():
        median = statistics.median(times)
        rows.append((
            name, f"{median:.1f} s", f"{min(times):.1f} to {max(times):.1f}", f"{episodes / median:.2f}",
            f"{tokens / median:.0f}", f"{limit / median:.2f}" if limit else "", f"{median / ours:.2f}",
        ))  # fmt: skip
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, {_gpus()}; {episodes} episodes, {turns} turns, {tokens} output tokens, "
          f"{concurrency} open, medians of {len(taken['rollout'])}")  # fmt: skip
    header = ("what", "median", "range", "episodes/s", "output tokens/s", "of the limit", "times rollout")
    print("\n".join(table(rows, header)))


def _gpus() -> str:
    import torch

    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return f"{len(names)} x {names[0]}" if names else "no GPU"


if __name__ == "__main__":
    main()
