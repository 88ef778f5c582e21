"""`pairgen sft` learns the model's own words in won episodes, of runs, of dialogues, or of pairs' chosen sides."""

import json

import pytest
from click.testing import CliRunner
from factories import make_episodes, write_run
from test_interactions import row, written

from pairgen.cli import main

SMALL = ["--batch-size", "2", "--max-steps", "2", "--lora-r", "4", "--lora-alpha", "8", "--learning-rate", "0.01"]


def pairgen(*arguments, code=0):
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def summary_of(result):
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("sft") / "run", make_episodes(tasks=4))


def test_a_run_is_learned_from_and_merged(run, tiny_model, tmp_path):
    arguments = ["sft", run, "--no-eval-split", "--model", tiny_model, "--out", tmp_path / "out", *SMALL]
    summary = summary_of(pairgen(*arguments, "--merge", "--json"))
    assert summary["steps"] == 2
    assert summary["loss_first"] > 0
    assert summary["test"]["loss"] > 0
    assert (tmp_path / "out" / "merged" / "model.safetensors").exists()


def test_the_loss_lies_on_the_completion_alone(run, tiny_model, tmp_path, monkeypatch):
    import trl

    seen = []
    train = trl.SFTTrainer.train

    def watch(self, *args, **kwargs):
        seen.append((self.data_collator([self.train_dataset[0]]), self.processing_class))
        return train(self, *args, **kwargs)

    monkeypatch.setattr(trl.SFTTrainer, "train", watch)
    pairgen("sft", run, "--no-eval-split", "--model", tiny_model, "--out", tmp_path / "out", *SMALL)
    batch, tokenizer = seen[0]
    labels = batch["labels"][0]
    learned = tokenizer.decode(labels[labels != -100])
    assert learned.startswith("CLUE: ")
    assert learned.rstrip("\n").endswith("<|im_end|>")
    assert "Play " in tokenizer.decode(batch["input_ids"][0])
    assert "Play " not in learned


def test_evaluation_instances_are_not_learned(run, tiny_model, tmp_path):
    keys = tmp_path / "keys.jsonl"
    keys.write_text(json.dumps({"game": "taboo", "experiment": "high_en", "task_id": 1}))
    arguments = ["sft", run, "--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--json"]
    said = pairgen(*arguments, "--eval-keys", keys)
    assert "eval_key" in said.stderr
    assert summary_of(said)["data"]["train"] > 0


def test_dialogues_in_playpens_shape_are_learned_from(tiny_model, tmp_path):
    path = written(tmp_path, *(row("failure" if task == 3 else "success", task=task) for task in range(6)))
    arguments = ["sft", path, "--no-eval-split", "--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--json"]
    said = pairgen(*arguments)
    data = summary_of(said)["data"]
    assert data["train"] + data["test"] == 10
    assert "2 outcome_lose" in said.stderr


@pytest.mark.parametrize("missing", ["game", "experiment", "task_id"])
def test_dialogues_that_name_no_instance_need_a_word_about_evaluation(tiny_model, tmp_path, missing):
    whole = row()
    path = written(tmp_path, {**whole, "meta": {k: v for k, v in whole["meta"].items() if k != missing}})
    keys = tmp_path / "keys.jsonl"
    keys.write_text(json.dumps({"game": "taboo", "experiment": "high_en", "task_id": 1}))
    result = pairgen("sft", path, "--eval-keys", keys, "--model", tiny_model, "--out", tmp_path / "out", code=1)
    assert "does not say of which game, experiment and task_id" in result.output


def test_chosen_sides_alone_are_the_control(run, tiny_model, tmp_path):
    pairs = tmp_path / "pairs"
    pairgen("corrupt", run, "--no-eval-split", "--no-verify", "--out", pairs)
    said = pairgen("sft", "--from", pairs, "--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--json")
    assert "the chosen sides of pairs alone" in said.stderr
    assert summary_of(said)["steps"] == 2


def test_one_kind_of_source_is_needed_and_pairs_take_no_selection(run, tmp_path):
    assert "--from PAIRS" in pairgen("sft", "--model", "m", code=2).output
    assert "--from PAIRS" in pairgen("sft", run, "--from", tmp_path, "--model", "m", code=2).output
    assert "leave out --games" in pairgen("sft", "--from", tmp_path, "--games", "taboo", "--model", "m", code=2).output
