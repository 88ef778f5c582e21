"""Published hyperparameters are what was published, and any of them gives way to what is said."""

import dataclasses

import pytest

from pairgen.errors import UsageProblem
from pipelines.recipes import DEFAULTS, RECIPES, Hyper, described, recipe_of, settle
from pipelines.train_config import DpoConfig, SftConfig

HYPER = {f.name for f in dataclasses.fields(Hyper)}
PUBLISHED = {
    "qwen3.5-9b-antiverbosity": (5e-5, 0.05, 8, 1, 2048, 0.3, 42),
    "llama3.1-8b-dpo-mix": (5e-6, 0.03, 16, 2, 4096, 0.1, 7331),
    "qwen3.5-9b-sft": (2e-4, 0.05, 16, 1, 1024, 0.0, 42),
    "llama3.1-8b-sft-mix": (5e-6, 0.03, 16, 2, 4096, 0.0, 7331),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_recipe_sets_every_value_that_was_published(name):
    recipe = RECIPES[name]
    hyper = settle(recipe.command, name, {})
    found = (
        hyper.learning_rate, hyper.warmup_ratio, hyper.batch_size, hyper.epochs, hyper.max_length,
        hyper.beta if recipe.command == "dpo" else 0.0, hyper.seed,
    )  # fmt: skip
    assert found == PUBLISHED[name]
    assert (hyper.lora_r, hyper.lora_alpha, hyper.lora_dropout, hyper.lora_targets) == (16, 32, 0.05, "all-linear")
    assert hyper.lora_save == (("lm_head", "embed_tokens") if "mix" in name else ())
    assert hyper.scheduler == "linear"


def test_what_is_said_wins_over_the_recipe_and_nothing_else_changes():
    said = settle("dpo", "llama3.1-8b-dpo-mix", {"beta": 0.5, "lora_save": (), "epochs": None, "model": "x"})
    plain = settle("dpo", "llama3.1-8b-dpo-mix", {})
    assert said == dataclasses.replace(plain, beta=0.5, lora_save=())


def test_all_weights_are_trained_at_another_rate_unless_one_is_said():
    assert settle("dpo", "", {}, full=True).learning_rate == 1e-6
    assert settle("dpo", "llama3.1-8b-dpo-mix", {}, full=True).learning_rate == 1e-6, "a recipe's is an adapter's"
    assert settle("dpo", "", {"learning_rate": 1e-4}, full=True).learning_rate == 1e-4


@pytest.mark.parametrize(("command", "config"), [("dpo", DpoConfig), ("sft", SftConfig)])
def test_recipe_keys_are_fields_and_the_defaults_leave_none_out(command, config):
    fields = {f.name: f.default for f in dataclasses.fields(config)}
    theirs = HYPER & fields.keys()
    assert HYPER - theirs == (set() if command == "dpo" else {"beta", "loss_type"})
    assert {fields[name] for name in theirs} == {None}
    for values in (DEFAULTS[command], *(r.values for r in RECIPES.values() if r.command == command)):
        assert set(values) == theirs


def test_a_recipe_of_the_other_command_and_a_mistyped_one_are_answered():
    with pytest.raises(UsageProblem, match="is for pairgen sft"):
        recipe_of("dpo", "qwen3.5-9b-sft")
    with pytest.raises(UsageProblem, match="did you mean llama3.1-8b-dpo-mix"):
        recipe_of("dpo", "llama3-8b-dpo-mix")


def test_recipes_are_described_with_source_and_values():
    text = "\n".join(described("dpo"))
    assert "dpo_trainer_lora.py" in text
    assert "lora_save=lm_head,embed_tokens" in text
    assert "sft" not in {line.split()[0] for line in described("dpo") if line and not line.startswith(" ")}
