"""Which games and instances there are, as clemcore finds them. Runs in a worker; plays nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from clemcore import get_version
from clemcore.clemgame import GameInstances, GameRegistry, GameSpec

from pairgen.clem.client import DEMO_GAMES
from pairgen.errors import did_you_mean
from pairgen.records import content_id, instance_hash

DEFAULT_BENCHMARK = "2.0"


def find_games(clembench: str | None, cwd: str, selectors: list[str], *, lenient: bool = False) -> dict[str, Any]:
    """The selected games with the keys of their instances, or `{"problem": sentence}`.

    Looks where clemcore looks (`clembench`, or `game_registry.json` and folders of `cwd`, or CLEMBENCH_HOME), and
    always at the built-in demo games. A selector is a game's name, a benchmark version (`2.0`, `demo`), `all`, or
    a JSON object as clemcore takes it; `lenient` leaves out what a selector does not find.
    """
    specs = _registered(clembench, cwd)
    demo = _registry_of(str(DEMO_GAMES))
    if not specs and not selectors:
        where = clembench or "this folder, game_registry.json or CLEMBENCH_HOME"
        return {"problem": f"no games found in {where}: give --clembench DIR (a clembench checkout), "
                "set CLEMBENCH_HOME, or play the built-in games with --games demo."}  # fmt: skip
    chosen: dict[tuple[str, str], Any] = {}
    for selector in selectors or [DEFAULT_BENCHMARK if _select(specs, DEFAULT_BENCHMARK) else "all"]:
        matching = _select(specs, selector) or _select(demo, selector)
        if not matching and lenient:
            continue
        if not matching:
            return {"problem": _unknown(selector, [*specs, *demo], found=bool(specs))}
        chosen.update({(s.game_name, str(s.game_path)): s for s in matching})
    games = [_describe(spec) for spec in sorted(chosen.values(), key=lambda s: str(s.game_name))]
    return {"games": games, "clembench_commit": _commit(games), "edition": _edition(games)}


def _registered(clembench: str | None, cwd: str) -> list[Any]:
    if clembench:
        return _registry_of(clembench)
    os.chdir(cwd)
    with contextlib.redirect_stdout(io.StringIO()):
        found = list(GameRegistry.from_directories_and_cwd_files())
    return [_absolute(spec, cwd) for spec in found]


def _registry_of(folder: str) -> list[Any]:
    registry = GameRegistry()
    registry.register_from_directories(str(Path(folder).resolve()), 0, max_depth=3)
    return list(registry)


def _absolute(spec: Any, cwd: str) -> Any:
    spec.game_path = str((Path(cwd) / str(spec.game_path)).resolve())
    return spec


def _select(specs: list[Any], selector: str) -> list[Any]:
    named = [s for s in specs if s.game_name == selector]
    if named:
        return named[:1]
    if selector == "all":
        return [s for s in specs if _is_text(s)]
    benchmark = [s for s in specs if selector in getattr(s, "benchmark", []) and _is_text(s)]
    if benchmark or not selector.startswith("{"):
        return benchmark
    with contextlib.suppress(ValueError):
        registry = GameRegistry(specs)
        return list(registry.get_game_specs_that_unify_with(GameSpec.from_string(selector), verbose=False))
    return []


def _is_text(spec: Any) -> bool:
    return getattr(spec, "image", "none") == "none" and spec.game_file_exists()


def _unknown(selector: str, specs: list[Any], *, found: bool) -> str:
    names = {str(s.game_name) for s in specs} | {str(b) for s in specs for b in getattr(s, "benchmark", [])}
    hint = "" if found else " (no clembench checkout was found: give --clembench DIR)"
    return f"there is no game or benchmark version {selector!r}: {did_you_mean(selector, names)}{hint}"


def _describe(spec: Any) -> dict[str, Any]:
    fields = {k: v for k, v in vars(spec).items() if k != "lookup_source"}
    game: dict[str, Any] = {"spec": fields, "game": spec.game_name, "instances": [], "problem": ""}
    try:
        rows = GameInstances.from_game_spec(spec)
        game["instances"] = [
            [
                r["experiment"]["name"],
                int(r["game_instance"]["game_id"]),
                instance_hash(spec.game_name, r["game_instance"]),
            ]
            for r in rows
        ]
    except Exception as error:
        game["problem"] = f"{type(error).__name__}: {error}"
    return game


def _commit(games: list[dict[str, Any]]) -> str:
    """The git commit of the checkout that holds the first game, or "" for games that come from none."""
    if not games or str(DEMO_GAMES) in str(games[0]["spec"]["game_path"]):
        return ""
    command = ["git", "-C", str(games[0]["spec"]["game_path"]), "rev-parse", "HEAD"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    return ""


def _edition(games: list[dict[str, Any]]) -> str:
    """Names the code of these games and of clemcore: where it is equal, game masters judge alike."""
    folders = sorted({str(game["spec"]["game_path"]) for game in games})
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    return content_id(get_version(), [file.read_bytes().decode("utf-8", "replace") for file in files])


def load_spec(fields: dict[str, Any]) -> Any:
    """The game spec again, from `find_games`' form."""
    return GameSpec.from_dict(json.loads(json.dumps(fields)))
