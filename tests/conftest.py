"""What several test modules share."""

import asyncio

import pytest


@pytest.fixture(scope="session")
def smollm2():
    """The folder of SmolLM2-135M-Instruct, a small real model."""
    from pipelines.fetch_model import fetch

    return fetch()


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
