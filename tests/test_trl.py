"""What pairgen writes, TRL's own DPOTrainer trains on."""

import json
import os

import pytest
from factories import make_episodes, write_run

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A pair set of real strategies on a synthetic run of many instances."""
    from click.testing import CliRunner

    from pairgen.cli import main

    folder = tmp_path_factory.mktemp("pairs")
    run = write_run(folder / "run", make_episodes(tasks=20))
    arguments = ["corrupt", str(run), "--no-eval-split", "--no-verify", "--out", str(folder / "pairs"), "--json"]
    result = CliRunner().invoke(main, [*arguments, "--strategy", "verbose", "--strategy", "looping"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["test"] > 0
    return folder / "pairs"


def test_two_optimisation_steps(pairs, smollm2, tmp_path):
    os.environ["WANDB_MODE"] = "disabled"
    import datasets
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    data = datasets.load_dataset(str(pairs), cache_dir=str(tmp_path / "cache"))
    assert set(data) == {"train", "test"}
    assert data["train"].column_names == ["prompt", "chosen", "rejected"]
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    before = model.model.layers[0].mlp.up_proj.weight.detach().clone()
    arguments = DPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, learning_rate=1e-5, beta=0.3,
        max_length=2048, report_to=[], logging_steps=1, save_strategy="no", use_cpu=True, bf16=False,
    )  # fmt: skip
    trainer = DPOTrainer(
        model=model, args=arguments, train_dataset=data["train"], eval_dataset=data["test"],
        processing_class=AutoTokenizer.from_pretrained(smollm2),
    )  # fmt: skip
    assert len(trainer.train_dataset) == len(data["train"])
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert trainer.state.global_step == 2
    assert len(losses) == 2
    assert losses[0] == pytest.approx(0.693, abs=0.01)
    assert not torch.equal(before, trainer.model.model.layers[0].mlp.up_proj.weight)
