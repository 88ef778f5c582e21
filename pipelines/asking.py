"""Has the errands of a pair set done: what is known comes from the notebook, the rest from engines. Shows progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pairgen.console import progress, say
from pairgen.engines.select import make_engine
from pairgen.errors import EngineError, UsageProblem
from pairgen.strategy import Choice, Draft, Strategy
from pipelines import drafts
from pipelines.answerers import Answering, check_judge, check_model
from pipelines.drafts import Answerer, Answers
from pipelines.errands import Drafted, Errand
from pipelines.supervise import Supervised

RESTARTS = 2


def answerers_for(
    choices: Sequence[Choice], strategies: Mapping[str, Strategy], said: Answering, runs: Sequence[Path]
) -> list[Answerer]:
    """Whom the chosen strategies ask. Raises UsageProblem, before any work, where one of them cannot be asked."""
    asked = {strategies[choice.name].asked for choice in choices}
    found = [check_model(said, runs)] if "model" in asked else []
    return [*found, *([check_judge(said)] if "judge" in asked else [])]


class Desk:
    """Hands errands to their answerers; an engine is started only where an answer is not known yet.

    `homes` has the run of each episode: there its answers are kept, whatever other runs are taken along.
    """

    def __init__(self, answerers: Collection[Answerer], homes: Mapping[str, Path]):
        self._answerers, self._homes = answerers, homes

    def __call__(self, errands: Sequence[Errand]) -> Drafted:
        notebooks = {run: Answers(run / drafts.FILE) for run in dict.fromkeys(self._homes.values())}
        known = {key: draft for notebook in notebooks.values() for key, draft in notebook.known.items()}

        def keep(answerer: Answerer, errand: Errand, draft: Draft) -> None:
            known[answerer.key(errand)] = draft
            notebooks[self._homes[errand.session]].add(answerer.key(errand), draft)

        found: dict[str, Draft] = {}
        uses = []
        for answerer in self._answerers:
            own = [errand for errand in errands if errand.asked == answerer.asked]
            owed = [errand for errand in own if answerer.key(errand) not in known]
            if owed:
                asyncio.run(_ask(answerer, owed, keep))
            mine = drafts.taken(answerer, own, known)
            use = drafts.use_of(answerer, list(mine.values()))
            uses += [use] if own else []
            found |= mine
            failed = sum(bool(draft.problem) for draft in mine.values())
            say(
                f"{answerer.asked} {answerer.name}: {use.replies} replies ({len(own) - len(owed)} known from before, "
                f"{len(owed)} asked for, {failed} failed), {use.prompt_tokens:,} tokens in, {use.completion_tokens:,} "
                f"out{'' if use.cost is None else f', cost {use.cost:g}'}"
            )
        return Drafted(found, tuple(uses))


async def _ask(answerer: Answerer, owed: Sequence[Errand], keep: Callable[[Answerer, Errand, Draft], None]) -> None:
    most = max(errand.ask.max_tokens for errand in owed)
    try:
        engine = Supervised(make_engine(replace(answerer.options, max_tokens=most)), RESTARTS, _say_restart)
        say(f"loading {answerer.name} ({engine.name})")
        try:
            await engine.start()
            with progress(len(owed), f"asking {answerer.name}", "reply") as bar:

                def note(errand: Errand, draft: Draft) -> None:
                    keep(answerer, errand, draft)
                    bar.update()

                await drafts.ask_all(engine, answerer, owed, note)
        finally:
            await engine.close()
    except (EngineError, UsageProblem) as error:
        if answerer.asked != "judge":
            raise
        raise type(error)(
            f"The judge {answerer.name} cannot be asked (its name and address are given as --judge MODEL@URL): {error}"
        ) from error


def _say_restart(why: str) -> None:
    say(f"the engine died ({why}); starting it again, answers so far are kept")
