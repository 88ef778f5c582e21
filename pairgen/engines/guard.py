"""Ends an engine's processes when the process that started them was killed: left alone they go on and hold the GPU.

A process of its own watches; where there is no /proc it does nothing. Knows no engine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LOOK_S = 0.5
PATIENCE_S = 3.0  # between asking a process to end and ending it


class Guard:
    """From now on, what this process starts does not outlive it; until `dismiss`, which ends nothing."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid())]
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)

    def dismiss(self) -> None:
        self._process.kill()
        self._process.wait()


def watch(driver: int) -> None:
    """Returns once `driver`, the parent of this process, is dead and what it had started meanwhile, too."""
    before = descendants(driver)
    started: dict[int, str] = {}
    while os.getppid() == driver:
        started = {pid: birth for pid, birth in descendants(driver).items() if before.get(pid) != birth}
        time.sleep(LOOK_S)
    started.pop(os.getpid(), None)
    for which, patience in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, 0.0)):
        started = {pid: birth for pid, birth in started.items() if birth_of(pid) == birth}
        for pid in started:
            with contextlib.suppress(OSError):
                os.kill(pid, which)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(birth_of(pid) == birth for pid, birth in started.items()):
            time.sleep(0.1)


def descendants(parent: int) -> dict[int, str]:
    """The living descendants of a process, each with its time of birth, since numbers are used again."""
    found: dict[int, str] = {}
    open_ = [parent]
    while open_:
        for path in Path(f"/proc/{open_.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                new = {int(pid): birth_of(int(pid)) for pid in path.read_text().split()}
                found |= {pid: birth for pid, birth in new.items() if birth}
                open_ += new
    return found


def birth_of(pid: int) -> str:
    """When a process was born, in the system's ticks; "" where it is dead."""
    with contextlib.suppress(OSError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""


if __name__ == "__main__":
    watch(int(sys.argv[1]))
