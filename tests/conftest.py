"""What several test modules share."""

import asyncio
import os
import shutil

import pytest


@pytest.fixture(scope="session")
def smollm2():
    """The folder of SmolLM2-135M-Instruct, a small real model."""
    from pipelines.fetch_model import fetch

    return fetch()


@pytest.fixture(scope="session")
def smollm2_adapter(smollm2, tmp_path_factory):
    """A LoRA adapter for it that was never trained: random, and large enough to change what the model says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"]))
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    folder = tmp_path_factory.mktemp("adapter") / "tuned"
    tuned.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """The folder of a random Llama that trains in seconds; its embeddings are tied, its weights bfloat16."""
    from tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny-llama", tied=True, dtype="bfloat16")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One game server for all tests: its start imports clemcore, which takes seconds."""
    from pairgen.clem.client import GameServer

    loop = asyncio.new_event_loop()
    server = GameServer(tmp_path_factory.mktemp("server"))
    loop.run_until_complete(server.__aenter__())
    server.loop = loop
    yield server
    loop.run_until_complete(server.__aexit__())
    loop.close()


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium. One for a module: while it is there, nothing else may run an event loop."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("PAIRGEN_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.fail("No Chromium is here: apt-get install chromium, or name one in PAIRGEN_CHROMIUM.", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()
