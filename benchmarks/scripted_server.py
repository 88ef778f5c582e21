"""An OpenAI-compatible server with scripted replies, in a process that can be killed and started again at its port.

`python benchmarks/scripted_server.py PORT LATENCY_S SERVED.jsonl` serves; every request it answered becomes a
line of the file: its seed and the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.clem.client import DEMO_GAMES
from pairgen.engines import EngineOptions, Request, Sampling
from pairgen.engines.scripted import ScriptedEngine, from_options
from pairgen.records import Message

MODEL = "scripted"
REPLIES: dict[str, Any] = {
    "default": "I pass.",
    "replies": [
        {"first": r'sentence for the words "(?P<a>\w+), (?P<b>\w+), (?P<c>\w+)"',
         "reply": [r"SENTENCE: The \g<a> \g<b> at the \g<c>.", "SENTENCE: Nothing fits."]},
        {"first": r'sentence for the words "(?P<a>\w+), (?P<b>\w+)', "reply": r"SENTENCE: \g<a> and \g<b>."},
        {"last": r"(?P<a>[A-Z]\w+) or (?P<b>[A-Z]\w+)", "reply": [r"STOP: \g<a>", r"STOP: \g<b>"]},
        {"last": "country", "reply": ["STOP: Rome", "STOP: Sofia", "STOP: Paris", "I do not know."]},
        {"last": r'give a hint for the notes "(?P<a>[^"]+)"', "reply": r"HINT: It is \g<a>."},
        {"last": r'and the words "(?P<a>\w+), (?P<b>\w+)"\.\s*$',
         "reply": [r"GUESS: \g<a>", r"GUESS: \g<b>", "GUESS: ?"]},
    ],
}  # fmt: skip
"""Replies to the demo games: won, lost and aborted episodes, of one move and more; equal for equal prompt and seed."""


def demo_instances(limit: int = 0) -> int:
    """How many instances the demo games have together, at most `limit` (0: all) of each counted."""
    files = [json.loads(path.read_text()) for path in DEMO_GAMES.glob("*/in/instances.json")]
    counts = [sum(len(e["game_instances"]) for e in file["experiments"]) for file in files]
    return sum(min(count, limit or count) for count in counts)


class Served(NamedTuple):
    """A request that a server answered, by its seed (different for each move of a rollout that samples), and when."""

    seed: int
    when: float


class ServerProcess:
    """The server as its user sees it: an address, and a process that lives or not."""

    def __init__(self, folder: Path, *, latency_s: float):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._latency_s, self._log = latency_s, folder / f"served-{self.port}.jsonl"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process and wait until it answers."""
        command = [sys.executable, str(Path(__file__).resolve()), str(self.port), str(self._latency_s), str(self._log)]
        self._process = subprocess.Popen(command)
        while self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/models", timeout=2).close()
                return
            time.sleep(0.02)
        raise SystemExit(f"the scripted server ended with {self._process.returncode}")

    def kill(self) -> None:
        """SIGKILL, which lets it finish nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def served(self) -> list[Served]:
        """What it answered so far, in all its lives; half a line that a kill left is left out."""
        lines = self._log.read_text().splitlines(keepends=True) if self._log.exists() else []
        return [Served(*json.loads(line)) for line in lines if line.endswith("]\n")]


def serve(port: int, latency_s: float, log: Path) -> None:
    """Answer until killed."""
    replies = log.with_name(f"replies-{port}.json")
    replies.write_text(json.dumps({**REPLIES, "latency_s": latency_s}))
    engine = from_options(EngineOptions(name="scripted", model=str(replies)))

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass  # a driver that is killed hangs up

    with log.open("a") as file:
        Server(("127.0.0.1", port), _handler(engine, file)).serve_forever(0.05)


def _handler(engine: ScriptedEngine, log: Any) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._answer({"object": "list", "data": [_listed()]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = _completion(engine, body)
            self._answer(answer)
            with lock:
                log.write(json.dumps([body.get("seed", -1), time.time()]) + "\n")
                log.flush()

        def _answer(self, data: dict[str, Any]) -> None:
            content = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _listed() -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "pairgen"}


def _completion(engine: ScriptedEngine, body: dict[str, Any]) -> dict[str, Any]:
    messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
    sampling = Sampling(max_tokens=body["max_tokens"], seed=body.get("seed"))
    said = asyncio.run(engine.generate(Request(messages, sampling, "")))
    usage: dict[str, Any] = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.completion_tokens}
    usage |= {"total_tokens": said.prompt_tokens + said.completion_tokens}
    message = {"role": "assistant", "content": said.text}
    choice = {"index": 0, "finish_reason": said.finish_reason, "message": message}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice], "usage": usage}


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
