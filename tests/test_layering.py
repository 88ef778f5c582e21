"""Imports go one way: core, then corruptions, then pipelines, then the command line."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ["core", "corruptions", "pipelines", "command line"]


def layer(module: str) -> int | None:
    if module.startswith(("pairgen.cli", "pairgen.commands", "pairgen.__main__")):
        return 3
    return {"pairgen": 0, "corruptions": 1, "pipelines": 2}.get(module.split(".")[0])


def modules() -> list[Path]:
    found = [p for top in ("pairgen", "corruptions", "pipelines") for p in (ROOT / top).rglob("*.py")]
    return [p for p in found if "demogames" not in p.parts]


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_nothing_above_its_layer(path):
    own = layer(".".join(path.relative_to(ROOT).with_suffix("").parts))
    above = {name for name in imported(path) if (layer(name) or 0) > own}
    assert not above, f"{path.relative_to(ROOT)} is in the layer {LAYERS[own]} and imports {above}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_says_what_it_is(path):
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc, f"{path.relative_to(ROOT)} has no docstring"


def test_no_module_is_a_bag():
    assert not [p for p in modules() if p.stem in {"utils", "common", "helpers", "misc", "util"}]
