"""A merged checkpoint says the same as base and adapter together, in the base's dtype, and names its end of turn."""

import json

import pytest
import torch
from click.testing import CliRunner
from tiny import make_tiny_model

from pairgen.cli import main
from pipelines.merge import QUESTION as ASKED
from pipelines.merge import merge

QUESTION = torch.arange(40)[None]


def adapter_on(base, folder, *, save=()):
    """A random adapter; modules in `save` are trained whole, which here means moved by noise."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", modules_to_save=list(save) or None)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), config)
    for name, weight in model.named_parameters():
        if "lora_B" in name or "modules_to_save" in name:
            weight.data += 0.1 * torch.randn_like(weight)
    model.save_pretrained(str(folder))
    return folder, model.eval()


def logits(folder):
    from transformers import AutoModelForCausalLM

    with torch.inference_mode():
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()(QUESTION).logits


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("save", [(), ("lm_head",), ("embed_tokens",), ("lm_head", "embed_tokens")])
def test_the_merged_model_says_what_base_and_adapter_say(tmp_path, tied, save):
    base = make_tiny_model(tmp_path / "base", tied=tied)
    adapter, model = adapter_on(base, tmp_path / "adapter", save=save)
    with torch.inference_mode():
        expected = model(QUESTION).logits
    made = merge(adapter, tmp_path / "merged")
    assert torch.allclose(logits(tmp_path / "merged"), expected, atol=1e-4)
    assert not torch.allclose(logits(base), expected, atol=1e-2)
    assert made.untied == (tied and bool(save))
    config = json.loads((tmp_path / "merged" / "config.json").read_text())
    assert config["tie_word_embeddings"] == (tied and not save)


def test_dtype_tokenizer_and_chat_template_are_the_bases_and_the_end_of_turn_is_an_end(tiny_model, tmp_path):
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, GenerationConfig

    adapter, _ = adapter_on(tiny_model, tmp_path / "adapter")
    made = merge(adapter, tmp_path / "merged")
    assert {w.dtype for w in load_file(tmp_path / "merged" / "model.safetensors").values()} == {torch.bfloat16}
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "merged")
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(tiny_model).chat_template
    ends = GenerationConfig.from_pretrained(tmp_path / "merged").eos_token_id
    assert set(ends) == {tokenizer.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>")}
    assert made.end_of_turn == "<|im_end|>"
    assert not made.stops  # a random model babbles on: told, not hidden


def test_what_the_base_says_of_sampling_stays(tmp_path):
    base = make_tiny_model(tmp_path / "base")
    (base / "generation_config.json").write_text(json.dumps({"eos_token_id": 5, "temperature": 0.6, "top_k": 20}))
    adapter, _ = adapter_on(base, tmp_path / "adapter")
    made = merge(adapter, tmp_path / "merged")
    written = json.loads((tmp_path / "merged" / "generation_config.json").read_text())
    assert (written["temperature"], written["top_k"]) == (0.6, 20)
    assert 5 in written["eos_token_id"]
    assert written["eos_token_id"] == list(made.eos_token_ids)


def test_a_model_that_ends_its_turn_is_seen_to_end_it(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = make_tiny_model(tmp_path / "base")
    adapter, _ = adapter_on(base, tmp_path / "adapter")
    merge(adapter, tmp_path / "merged")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "merged")
    asked = tokenizer.apply_chat_template(ASKED, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    with torch.inference_mode():
        last = model.model(**asked).last_hidden_state[0, -1].clone()
    plain = AutoModelForCausalLM.from_pretrained(base)
    plain.lm_head.weight.data.zero_()
    plain.lm_head.weight.data[tokenizer.convert_tokens_to_ids("<|im_end|>")] = last  # nothing is likelier after ASKED
    plain.save_pretrained(base)
    assert merge(adapter, tmp_path / "again").stops


def run(*arguments):
    return CliRunner().invoke(main, ["merge", *map(str, arguments)])


def test_what_is_no_adapter_and_what_is_not_free_are_refused_with_the_fix(tiny_model, tmp_path):
    adapter, _ = adapter_on(tiny_model, tmp_path / "adapter")
    result = run(tiny_model, "--out", tmp_path / "merged")
    assert (result.exit_code, "holds no adapter" in result.output) == (2, True)
    assert run(adapter, "--out", adapter).exit_code == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "is not empty" in run(adapter, "--out", tmp_path / "mine").output
    assert "leaves it alone" in run(adapter, "--out", tmp_path / "mine", "--overwrite").output
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_base_of_another_size_is_told(tiny_model, tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    adapter, _ = adapter_on(tiny_model, tmp_path / "adapter")
    other = make_tiny_model(tmp_path / "other")
    config = LlamaConfig.from_pretrained(other)
    config.hidden_size = 64
    LlamaForCausalLM(config).save_pretrained(other)
    result = run(adapter, "--model", other, "--out", tmp_path / "merged")
    assert result.exit_code == 1
    assert "give the adapter's own base with --model" in result.output
    assert not (tmp_path / "merged").exists()


def test_the_command_merges_and_says_so(tiny_model, tmp_path):
    adapter, _ = adapter_on(tiny_model, tmp_path / "adapter")
    result = run(adapter, "--out", tmp_path / "merged", "--json")
    summary = json.loads(result.stdout.splitlines()[-1])
    assert summary["out"] == str(tmp_path / "merged")
    assert "<|im_end|>" in result.stderr
