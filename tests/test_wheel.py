"""What is built is what is meant: exactly three top-level packages, with every data file that they read."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("pairgen", "corruptions", "pipelines")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    import shutil

    source, out = tmp_path_factory.mktemp("source") / "tree", tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "data", "*.egg-info", "__pycache__", "build"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_there_are_exactly_three_top_level_packages(names):
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_every_file_of_the_packages_is_in_the_wheel(names):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(listed.stdout.split()) - names == set()


def test_license_and_typing_marks_are_there(names):
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
