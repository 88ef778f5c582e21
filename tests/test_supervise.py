"""An engine is revived as often as was said, and not at all where that would change nothing."""

import asyncio

import pytest

from pairgen.engines import Completion, Request, Sampling
from pairgen.engines.scripted import ScriptedEngine
from pairgen.errors import EngineError, EngineRefused, EngineRestarted
from pairgen.records import Message
from pipelines.supervise import Supervised

ASK = Request((Message("user", "Hi"),), Sampling(), "s")


class Failing(ScriptedEngine):
    """Raises what it is given, one a request, then answers; counts its starts."""

    def __init__(self, *errors):
        super().__init__()
        self.errors, self.starts = list(errors), 0

    async def start(self):
        self.starts += 1

    async def generate(self, request):
        if self.errors:
            raise self.errors.pop(0)
        return await super().generate(request)


def ask(engine, said):
    return asyncio.run(Supervised(engine, 3, said.append).generate(ASK))


def test_a_dead_engine_is_started_again():
    engine, said = Failing(EngineError("out of memory")), []
    with pytest.raises(EngineRestarted):
        ask(engine, said)
    assert (engine.starts, said) == (1, ["out of memory"])
    assert isinstance(ask(engine, said), Completion)


def test_an_engine_that_refuses_is_final_at_once():
    engine, said = Failing(EngineRefused("export OPENAI_API_KEY with a key that this server takes.")), []
    with pytest.raises(EngineRefused, match="OPENAI_API_KEY"):
        ask(engine, said)
    assert (engine.starts, said) == (0, [])
