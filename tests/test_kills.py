"""What the benchmarks prove at length holds in short: kills of every kind change nothing of what a run leaves."""

import re
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_a_run_that_is_killed_in_every_way_ends_as_if_nothing_had_happened():
    command = [sys.executable, BENCHMARKS / "kills.py", "--kills", "3", "--limit", "4", "--samples", "1"]
    command += ["--latency", "0.2", "--concurrency", "2", "--outage", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 driver, 1 engine, 1 worker" in done.stdout
    assert re.search(r"every field of every episode +12 equal", done.stdout)
