"""Processes as /proc shows them (Linux): who descends from whom, what was called, and how much memory it holds."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from pathlib import Path

PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """All living descendants of a process, parents before their children; zombies are left out."""
    children = defaultdict(list)
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children[int(parent)].append(int(folder.name))
    found = [pid]
    for one in found:
        found += sorted(children[one])
    return found[1:]


def command_of(pid: int) -> str:
    """How a process was called or calls itself, "" where it is gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return ""


def fork_server(driver: int) -> int | None:
    """The process of a driver from which its game workers are forked."""
    return next((p for p in descendants(driver) if "pairgen.clem.server" in command_of(p)), None)


def workers(driver: int) -> list[int]:
    """The game worker processes of a driver."""
    server = fork_server(driver)
    return [] if server is None else descendants(server)


def resident_mb(*pids: int) -> float:
    """Resident memory in MiB, summed; pages that processes share count in each of them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            status = (PROC / str(pid) / "status").read_text()
            total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return total / 1024
