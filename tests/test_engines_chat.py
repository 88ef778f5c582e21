"""What goes wrong before a model has said anything is one sentence with the fix; more of chat needs a real model."""

from types import SimpleNamespace

import pytest

from pairgen.engines import Sampling, chat
from pairgen.errors import EngineError, RequestError


def named(name, text="", cause=None):
    """An error of a class of this name, as other packages raise it."""
    error = type(name, (Exception,), {})(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (named("OSError", "You are trying to access a gated repo."), "accept its terms at https://huggingface.co/o/m"),
        (named("OSError", "x", named("GatedRepoError")), "hf auth login"),
        (named("OSError", "x", named("RevisionNotFoundError")), "--revision"),
        (named("OSError", "x", named("RepositoryNotFoundError")), "check the name"),
        (named("OSError", "o/m is not a local folder and is not a valid model identifier"), "check the name"),
        (named("OSError", "x", named("LocalEntryNotFoundError")), "hf download o/m"),
        (named("OSError", "We couldn't connect to the server"), "hf download o/m"),
        (named("OSError", "x", named("Wrapper", "y", named("ConnectTimeout"))), "hf download o/m"),
        (named("KeyError", "some_new_architecture\nmore"), "transformers is recent enough"),
        (named("ValueError", ""), "no message"),
    ],
)
def test_each_way_not_to_load_has_its_fix(error, fix):
    said = str(chat.cannot_load("o/m", error))
    assert fix in said
    assert "\n" not in said


def test_a_name_that_nobody_can_look_up_here(monkeypatch, tmp_path):
    """With the real loader: no network, nothing cached."""
    pytest.importorskip("transformers")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EngineError, match=r"nobody-here/no-model.*(hf download|check the name)"):
        chat.load_chat("nobody-here/no-model")


@pytest.mark.parametrize("model", ["/no/such", "./no", "~/no/such", "a/b/c"])
def test_a_path_that_is_none(model):
    with pytest.raises(EngineError, match="There is no model folder"):
        chat.check_folder(model)


def test_a_hub_name_is_not_taken_for_a_path():
    chat.check_folder("owner/model")
    chat.check_folder("gpt2")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"")
    with pytest.raises(EngineError, match="is a file"):
        chat.check_folder(str(tmp_path / "model.gguf"))


def test_the_context_is_found_under_any_of_its_names():
    text = SimpleNamespace(max_position_embeddings=32)
    assert chat.context_of(SimpleNamespace(get_text_config=lambda: text)) == 32
    assert chat.context_of(SimpleNamespace(n_positions=16)) == 16
    assert chat.context_of(SimpleNamespace()) is None


def test_prompt_and_reply_may_fill_the_context_and_no_more():
    chat.check_room("m", 90, Sampling(max_tokens=10), 100)
    chat.check_room("m", 90, Sampling(max_tokens=10), None)
    with pytest.raises(RequestError, match=r"91 tokens and up to 10 new tokens are 101, 1 more than .* 100") as caught:
        chat.check_room("m", 91, Sampling(max_tokens=10), 100)
    assert caught.value.kind == "context_exceeded"


@pytest.mark.parametrize(
    ("context", "wanted", "max_tokens", "said"),
    [
        (100, 200, 10, r"--max-model-len 200 .* 100 tokens"),
        (100, None, 100, r"--max-tokens 100 .* 100 tokens of m: lower --max-tokens\."),
        (100, 50, 60, r"--max-tokens 60 .* 50 tokens of m: lower --max-tokens, or raise --max-model-len\."),
    ],
)
def test_a_context_that_cannot_be_is_found_at_the_start(context, wanted, max_tokens, said):
    with pytest.raises(EngineError, match=said):
        chat.check_start("m", context, wanted, max_tokens)


def test_a_context_that_can_be_is_taken():
    chat.check_start("m", 100, 100, 99)
    chat.check_start("m", None, None, 5_000)
