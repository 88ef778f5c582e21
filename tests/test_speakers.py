"""Which engines a configuration needs, what they are called, and who of two is asked."""

import asyncio
import json

import pytest

from pairgen.engines import Request, Sampling
from pairgen.engines.scripted import ScriptedEngine
from pairgen.errors import EngineError
from pairgen.records import Message
from pipelines.rollout_config import RolloutConfig
from pipelines.speakers import LEAST_SHARE, Speakers, labels_of, notice_adapter, speakers_options


def config(**fields):
    return RolloutConfig(**{"model": "org/Small", "engine": "vllm", **fields})


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, ("Small", "")),
        ({"partner": "org/Large"}, ("Small", "Large")),
        ({"partner": "gpt@http://h/v1"}, ("Small", "gpt")),
        ({"partner": "/other/Small"}, ("Small", "Small.partner")),
        ({"partner": "org/Small", "lora": "me/tuned"}, ("Small+tuned", "Small")),
    ],
)
def test_learner_and_partner_have_different_names(fields, labels):
    assert labels_of(config(**fields)) == labels


@pytest.mark.parametrize(
    ("fields", "engines"),
    [
        ({}, 1),
        ({"partner": "org/Small"}, 1),
        ({"partner": "org/Small", "lora": "a"}, 1),
        ({"partner": "org/Small", "lora": "a", "engine": "transformers"}, 2),
        ({"partner": "org/Large"}, 2),
        ({"partner": "org/Small@http://h/v1"}, 2),
    ],
)
def test_a_second_engine_is_made_only_where_one_cannot_serve_both(fields, engines):
    assert sum(o is not None for o in speakers_options(config(**fields))) == engines


def test_a_partner_beside_the_learner_has_no_adapter_and_a_share_of_the_memory(tmp_path):
    for name, size in (("small", 1_000), ("large", 9_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(bytes(size))
    given = config(model=str(tmp_path / "small"), partner=str(tmp_path / "large"), lora="a", revision="r")
    learner, partner = speakers_options(given)
    assert (learner.lora, learner.revision, learner.memory_share) == ("a", "r", LEAST_SHARE)
    assert (partner.model, partner.lora, partner.revision) == (given.partner, None, None)
    assert partner.memory_share == 1 - LEAST_SHARE
    unknown = speakers_options(config(partner="org/Large"))
    assert [o.memory_share for o in unknown] == [0.5, 0.5]


def test_a_partner_at_a_server_is_asked_there_and_leaves_the_device_alone():
    given = config(partner="gpt@http://h/v1", engine_arg=("max_num_seqs=8",), chat_template_kwargs=("a=1",))
    learner, partner = speakers_options(given)
    assert (learner.memory_share, learner.engine_args) == (1.0, ("max_num_seqs=8",))
    assert (partner.name, partner.model, partner.base_urls) == ("openai", "gpt", ("http://h/v1",))
    assert (partner.engine_args, partner.chat_template_kwargs) == ((), ())


def test_a_partner_at_the_learners_servers_is_another_model_there():
    learner, partner = speakers_options(config(engine="auto", base_url=("http://h/v1",), partner="other"))
    assert (learner.model, partner.model, partner.base_urls) == ("org/Small", "other", learner.base_urls)


class Loud(ScriptedEngine):
    """Keeps the order of starts and ends."""

    def __init__(self, name, log, *, broken=False):
        super().__init__(lambda _: name, model=name)
        self.log, self.broken = log, broken

    async def start(self):
        self.log.append(f"start {self.model}")
        if self.broken:
            raise EngineError("no memory")

    async def close(self):
        self.log.append(f"close {self.model}")


def test_requests_for_the_bare_model_go_to_the_partner():
    log = []
    both = Speakers(Loud("learner", log), Loud("partner", log))

    async def play():
        await both.start()
        prompt = (Message("user", "Hi"),)
        said = [(await both.generate(Request(prompt, Sampling(), "s", bare=bare))).text for bare in (False, True)]
        await both.close()
        return said

    assert asyncio.run(play()) == ["learner", "partner"]
    assert log == ["start learner", "start partner", "close learner", "close partner"]
    assert both.model == "learner"


def test_a_partner_that_cannot_start_takes_the_learner_with_it():
    log = []
    with pytest.raises(EngineError, match="no memory"):
        asyncio.run(Speakers(Loud("learner", log), Loud("partner", log, broken=True)).start())
    assert log == ["start learner", "start partner", "close learner"]


def test_an_adapter_for_another_base_is_noticed(tmp_path, capsys):
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 8, "base_model_name_or_path": "org/Large"})
    )
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    notice_adapter(config(lora=str(tmp_path)))
    assert "made for org/Large" in capsys.readouterr().err
    notice_adapter(config(model="/models/Large", lora=str(tmp_path)))
    assert capsys.readouterr().err == ""
