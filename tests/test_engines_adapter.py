"""An adapter is found and read before a model is loaded, and what is wrong with it is said with the fix."""

import json

import pytest

from pairgen.engines.adapter import find_adapter, rank_for_vllm
from pairgen.errors import EngineError

RANKS = (8, 16, 32)


@pytest.fixture
def adapter(tmp_path):
    """Writes an adapter's folder as far as it is looked at."""

    def write(config=None, *, weights=True, **fields):
        folder = tmp_path / "tuned"
        folder.mkdir(exist_ok=True)
        known = {"peft_type": "LORA", "r": 8, "base_model_name_or_path": "org/Small"}
        (folder / "adapter_config.json").write_text(json.dumps({**known, **fields}) if config is None else config)
        if weights:
            (folder / "adapter_model.safetensors").write_bytes(b"")
        return str(folder)

    return write


def test_an_adapter_says_its_rank_and_base(adapter):
    found = find_adapter(adapter(r=12, rank_pattern={"q_proj": 20}))
    assert (found.name, found.rank, found.base) == ("tuned", 20, "org/Small")
    assert rank_for_vllm(found, RANKS) == 32


@pytest.mark.parametrize(("model", "fits"), [("org/Small", True), ("/models/Small/", True), ("org/Large", False)])
def test_a_base_is_known_by_its_last_name(adapter, model, fits):
    assert find_adapter(adapter()).looks_made_for(model) is fits


def test_an_adapter_that_names_no_base_fits_all(adapter):
    assert find_adapter(adapter(base_model_name_or_path=None)).looks_made_for("m")


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ({"config": "{"}, "cannot be read.*save_pretrained"),
        ({"config": "[]"}, "cannot be read.*save_pretrained"),
        ({"peft_type": "PROMPT_TUNING"}, "no LoRA adapter.*merge it"),
        ({"r": None}, "no LoRA adapter.*merge it"),
        ({"weights": False}, "no weights.*copy the whole folder"),
    ],
)
def test_a_broken_adapter_is_one_sentence_with_a_fix(adapter, given, fix):
    with pytest.raises(EngineError, match=fix):
        find_adapter(adapter(**given))


def test_a_missing_adapter_is_one_sentence_with_a_fix(tmp_path, monkeypatch):
    with pytest.raises(EngineError, match="no adapter folder.*Hub id"):
        find_adapter(str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match="no adapter_config.json"):
        find_adapter(str(tmp_path))
    with pytest.raises(EngineError, match="no adapter folder"):
        find_adapter("nothing")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"r": 64}, "up to rank 32"),
        ({"use_dora": True}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    ],
)
def test_what_vllm_cannot_serve_is_to_be_merged(adapter, fields, said):
    with pytest.raises(EngineError, match=rf"{said}.*merge_and_unload.*--model"):
        rank_for_vllm(find_adapter(adapter(**fields)), RANKS)
