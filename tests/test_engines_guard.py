"""What an engine started does not outlive a driver that is killed, and is left alone where the guard was dismissed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pairgen.engines.guard import birth_of

DRIVER = """
import signal, subprocess, sys, time
from pairgen.engines.guard import Guard
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
def start(code):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
early = start("import time; time.sleep(60)")
guard = Guard()
time.sleep(0.6)
parent = "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
nested = start(parent + "; print(child.pid, flush=True); time.sleep(60)")
inner, stubborn = int(nested.stdout.readline()), start(deaf)
stubborn.stdout.readline()
if sys.argv[1] == "dismissed":
    guard.dismiss()
time.sleep(1.5)
print(early.pid, nested.pid, inner, stubborn.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
@pytest.mark.parametrize(
    ("guard", "survive"), [("present", [True, False, False, False]), ("dismissed", [True, True, True, True])]
)
def test_what_a_killed_driver_started_ends(guard, survive):
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, guard], stdout=subprocess.PIPE)
    pids = [int(pid) for pid in driver.stdout.readline().split()]
    assert all(map(birth_of, pids))
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + (12 if guard == "present" else 2)
    while time.monotonic() < deadline and [bool(birth_of(pid)) for pid in pids] != survive:
        time.sleep(0.1)
    if guard == "dismissed":
        time.sleep(1)
    found = [bool(birth_of(pid)) for pid in pids]
    for pid, alive in zip(pids, found, strict=True):
        if alive:
            os.kill(pid, signal.SIGKILL)
    assert found == survive
