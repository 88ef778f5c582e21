"""doctor says of each game whether it plays here, and of the engine whether it answers."""

import json
import shutil
import subprocess
import sys

import pytest

from pairgen.clem.client import DEMO_GAMES


@pytest.fixture
def checkout(tmp_path):
    """A checkout of which one game plays, one misses a package, and one has no instances."""
    for name in ("wordweave", "roundtrip", "hintmatch"):
        shutil.copytree(DEMO_GAMES / name, tmp_path / "games" / name)
    master = tmp_path / "games" / "roundtrip" / "master.py"
    master.write_text("import no_such_package\n" + master.read_text())
    (tmp_path / "games" / "hintmatch" / "in" / "instances.json").write_text('{"experiments": []}')
    return tmp_path / "games"


def doctor(*arguments):
    command = [sys.executable, "-m", "pairgen.cli", "doctor", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    checks = {c["what"]: c for c in json.loads(done.stdout.splitlines()[-1])["checks"]}
    return done.returncode, checks, done.stderr


def test_each_game_is_ready_or_says_what_mends_it(checkout):
    code, checks, said = doctor("--clembench", checkout)
    assert code == 0
    assert checks["game wordweave"]["state"] == "ready"
    assert "No module named 'no_such_package'" in checks["game roundtrip"]["seen"]
    assert "pairgen[clembench]" in checks["game roundtrip"]["fix"]
    assert checks["game hintmatch"]["state"] == "missing"
    assert "game wordweave" in said


def test_it_fails_when_what_was_asked_for_cannot_run(checkout):
    assert doctor("--clembench", checkout, "--games", "roundtrip")[0] == 1
    code, checks, _ = doctor("--games", "demo", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert (code, checks["engine"]["state"]) == (1, "missing")
    assert "http://127.0.0.1:9/v1" in checks["engine"]["seen"]
