"""The training code on a pushed card, run as it is: TRL trains a tiny random model that it finds on the test Hub."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from factories import make_episodes
from hub_server import Hub
from test_card import code_of
from test_publish import make_set

from pairgen.records import to_dict
from pipelines import pairset
from pipelines.manifest import RunUsed

pytestmark = pytest.mark.model

TEMPLATE = "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' </s> ' }}{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}{{ 'assistant ' }}{% endif %}"


def tiny(folder):
    """A checkpoint of some thousand parameters with a word-level tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = ("<unk>", "</s>", "user", "assistant", "Play", "CLUE:", "taboo", "wordle", "high_en", "I", "think.")
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", pad_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=2048, eos_token_id=1,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)


def test_the_card_trains_the_model_that_played(tmp_path):
    hub = Hub()
    hub.account("hf_SECRETcard", "me")
    tiny(tmp_path / "tiny")
    files = {p.name: p.read_bytes() for p in (tmp_path / "tiny").iterdir()}
    hub.add_repo("me/tiny", private=False, kind="models", files=files)
    folder = make_set(tmp_path / "pairs", make_episodes(tasks=3))
    manifest = pairset.read_manifest(folder)
    run = RunUsed("play", "rollout", "me/tiny", "", 0.0, 1.0, 300, 6)
    (folder / "manifest.json").write_text(json.dumps(to_dict(dataclasses.replace(manifest, runs=(run,)))))
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": "hf_SECRETcard",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path / "h"),
    }
    env |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}

    def run_it(*command):
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=400)

    pushed = run_it(sys.executable, "-m", "pairgen.cli", "push", "pairs", "me/games")
    assert pushed.returncode == 0, pushed.stderr
    for code in code_of(hub.repo("me/games").files["README.md"].decode()):
        done = run_it(sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "train_loss" in done.stdout and list((tmp_path / "dpo").iterdir())
    hub.close()
