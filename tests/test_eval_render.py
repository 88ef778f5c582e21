"""Game masters tell the first prompts of evaluation instances; what they cannot tell has a reason."""

import pytest

from pairgen.clem.client import DEMO_GAMES
from pairgen.records import InstanceKey
from pipelines.eval_render import render


@pytest.fixture
def rendered(server):
    async def ask(keys):
        worker = await server.worker()
        found = await worker.ask("", op="catalog", clembench=str(DEMO_GAMES), cwd="/", selectors=["wordweave"])
        await worker.close()
        (game,) = found["games"]
        known = [InstanceKey("wordweave", experiment, task) for experiment, task, _ in game["instances"]]
        done = []
        return known[:3], done, await render(server, found["games"], [*known[:3], *keys], done.append)

    return lambda *keys: server.loop.run_until_complete(ask(keys))


def test_each_instance_gives_its_first_prompt(rendered):
    known, done, made = rendered()
    assert [p.key for p in made.prompts] == known == done and not made.failed
    assert len({p.text for p in made.prompts}) == 3 and all(p.role for p in made.prompts)


def test_what_is_not_here_has_a_reason_and_stops_nothing(rendered):
    missing, foreign = InstanceKey("wordweave", "easy", 10_000), InstanceKey("chess", "x", 1)
    known, _, made = rendered(missing, foreign)
    assert len(made.prompts) == len(known)
    assert "no such instance" in made.failed[missing] and "not here" in made.failed[foreign]
