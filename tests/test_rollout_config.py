"""A run's configuration: every option is a field, and a resumed run contradicts nothing that was played."""

import dataclasses

import pytest

from pairgen.commands import rollout_
from pairgen.errors import UsageProblem
from pipelines.rollout_config import MAY_CHANGE, MAY_GROW, RolloutConfig, check_partner, partner_of, resumed


def test_resume_refuses_what_contradicts_the_run():
    saved = dataclasses.asdict(RolloutConfig(model="m", games=("a",), seed=1))
    given = RolloutConfig(model="other", games=("b",), seed=2, concurrency=8, temperature=0.0)
    with pytest.raises(UsageProblem, match="--model other .the run has m.*--seed 2 .the run has 1."):
        resumed(saved, given, {"model", "seed", "temperature"})
    grown = resumed(saved, given, {"games", "concurrency"})
    assert (grown.model, grown.games, grown.seed, grown.concurrency) == ("m", ("a", "b"), 1, 8)


def test_options_and_configuration_have_the_same_names():
    options = {p.name for p in rollout_.command.params}
    fields = {f.name for f in dataclasses.fields(RolloutConfig)}
    assert options - fields == {"out", "resume", "overwrite", "as_json"}
    assert fields <= options
    assert fields >= MAY_CHANGE | MAY_GROW


def test_a_partner_may_move_but_not_change():
    saved = dataclasses.asdict(RolloutConfig(model="m", partner="p@http://a:1/v1"))
    moved = resumed(saved, RolloutConfig(model="m", partner="p@http://b:2/v1"), {"partner"})
    assert moved.partner == "p@http://b:2/v1"
    with pytest.raises(UsageProblem, match="--partner q@http://a:1/v1 .the run has p@http://a:1/v1."):
        resumed(saved, RolloutConfig(model="m", partner="q@http://a:1/v1"), {"partner"})


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("", ("", "")),
        ("owner/model", ("owner/model", "")),
        ("gpt@http://host:8000/v1", ("gpt", "http://host:8000/v1")),
        ("a@b@https://host/v1", ("a@b", "https://host/v1")),
    ],
)
def test_a_partner_is_a_model_and_perhaps_a_server(said, parts):
    assert partner_of(said) == parts


@pytest.mark.parametrize("said", ["@http://host:8000/v1", "model@host:8000/v1"])
def test_half_a_partner_is_refused(said):
    with pytest.raises(UsageProblem, match="http://"):
        check_partner(said)


def test_more_samples_of_a_greedy_run_are_refused():
    saved = dataclasses.asdict(RolloutConfig(model="m"))
    with pytest.raises(UsageProblem, match="--samples 2.*new run with --temperature 0.7"):
        resumed(saved, RolloutConfig(model="m", samples=2), {"samples"})
    warm = {**saved, "temperature": 0.7}
    assert resumed(warm, RolloutConfig(model="m", samples=2), {"samples"}).samples == 2
    before = {**saved, "samples": 3}  # from when this was not refused: it can be finished
    assert resumed(before, RolloutConfig(model="m"), set()).samples == 3
