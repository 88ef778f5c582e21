"""Drafts: asks a model or a judge for what strategies need, and keeps every answer in a notebook beside the run.

An answer is paid for once: a job that was stopped goes on with what it has, and another one finds it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pairgen.engines import Engine, EngineOptions, Request, Sampling
from pairgen.errors import EngineRestarted, RequestError
from pairgen.records import content_id
from pairgen.strategy import Draft
from pipelines.errands import DraftUse, Errand
from pipelines.notebook import Notebook

FILE = "drafts.jsonl"
ON_PAPER = 5  # of a draft: all but its problem


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers, and how it is reached. `identity` is what makes its answers its own: no machine, no address.

    `temperature` stands where an ask names none. `price` is money for a million tokens in, and out.
    """

    asked: str
    name: str
    identity: str
    options: EngineOptions
    temperature: float = 0.0
    top_p: float = 1.0
    price: tuple[float, float] | None = None

    def key(self, errand: Errand) -> str:
        """Names the answer in the notebook."""
        return content_id("draft", self.identity, self.temperature, self.top_p, errand.name)

    def request(self, errand: Errand) -> Request:
        ask = errand.ask
        temperature = self.temperature if ask.temperature is None else ask.temperature
        sampling = Sampling(temperature, self.top_p, ask.max_tokens, ask.seed, (), ask.min_tokens)
        return Request(ask.messages, sampling, errand.session, go_on=ask.go_on)


class Answers:
    """Answers that were given before, in a file beside the run; a torn last line is asked again."""

    def __init__(self, path: Path):
        self._notebook = Notebook(path)
        self.known: dict[str, Draft] = {
            line[0]: Draft(*line[1:]) for line in self._notebook.lines if len(line) == 1 + ON_PAPER
        }

    def add(self, key: str, draft: Draft) -> None:
        """Remember an answer at once; a failure is not one, and is asked again next time."""
        self.known[key] = draft
        if not draft.problem:
            self._notebook.add([[key, *draft[:ON_PAPER]]])


async def ask_all(
    engine: Engine, answerer: Answerer, errands: Iterable[Errand], on_draft: Callable[[Errand, Draft], None]
) -> None:
    """Ask for each errand, as many at once as the answerer's options allow; the engine is started.

    A request that fails is a draft with a problem. Raises EngineError when the engine cannot go on: what was answered
    until then has been handed to `on_draft`.
    """
    waiting = list(errands)[::-1]

    async def lane() -> None:
        while waiting:
            errand = waiting.pop()
            on_draft(errand, await _answer(engine, answerer, errand))

    lanes = [asyncio.ensure_future(lane()) for _ in range(min(answerer.options.concurrency, len(waiting)))]
    try:
        await asyncio.gather(*lanes)
    finally:
        for task in lanes:
            task.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)


async def _answer(engine: Engine, answerer: Answerer, errand: Errand) -> Draft:
    while True:
        try:
            said = await engine.generate(answerer.request(errand))
        except EngineRestarted:
            continue
        except RequestError as error:
            return Draft("", "", 0, 0, answerer.name, error.kind)
        counts = max(0, said.prompt_tokens), max(0, said.completion_tokens)
        return Draft(said.text, said.finish_reason, *counts, answerer.name)


def use_of(answerer: Answerer, drafts: Sequence[Draft]) -> DraftUse:
    """What these answers cost; those that failed are none."""
    given = [draft for draft in drafts if not draft.problem]
    told, said = sum(d.prompt_tokens for d in given), sum(d.completion_tokens for d in given)
    cost = None
    if answerer.price is not None:
        cost = round((told * answerer.price[0] + said * answerer.price[1]) / 1_000_000, 6)
    return DraftUse(answerer.asked, answerer.name, len(given), told, said, cost)


def taken(answerer: Answerer, errands: Sequence[Errand], known: Mapping[str, Draft]) -> dict[str, Draft]:
    """The answers to these errands, by the errands' names, under the name that the answerer has now."""
    keys = {errand.name: answerer.key(errand) for errand in errands}
    return {name: known[key]._replace(by=answerer.name) for name, key in keys.items() if key in known}
