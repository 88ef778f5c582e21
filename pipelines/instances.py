"""Which games and instances a rollout is given: found by a worker, evaluation instances taken out or played alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairgen.clem.client import DEMO_GAMES, GameServer
from pairgen.console import say
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import InstanceKey, to_dict
from pipelines import eval_split
from pipelines.decontaminate import Net
from pipelines.rollout_config import RolloutConfig


async def find_games(server: GameServer, config: RolloutConfig) -> dict[str, Any]:
    """The catalog of the games that were asked for. Raises UsageProblem where there are none such."""
    answer = await server.ask(
        op="catalog", clembench=config.clembench and str(Path(config.clembench).resolve()), cwd=str(Path.cwd()),
        selectors=list(config.games),
    )  # fmt: skip
    if "problem" in answer:
        raise UsageProblem(answer["problem"])
    for game in answer["games"]:
        if game["problem"]:
            say(f"{game['game']} is left out: its instances cannot be read ({game['problem']})")
    return answer


def choose_instances(games: Sequence[dict[str, Any]], config: RolloutConfig) -> dict[str, Any]:
    """Take evaluation instances out of the games' lists, or all others with `only_eval`; says what was done.

    Where nothing is said, the playpen split is asked for, and without it everything is played: corrupt takes out what
    must not be trained on. Raises PairgenError when the split is needed and cannot be read.
    """
    asked = bool(config.eval_keys or config.eval_split or config.eval_results)
    built_in = all(str(DEMO_GAMES) in str(game["spec"]["game_path"]) for game in games)
    if (config.exclude_eval is False and not config.only_eval) or (built_in and not asked and not config.only_eval):
        return {"sources": [], "left_out": 0}
    try:
        split = eval_split.read_eval_split(
            keys=[Path(p) for p in config.eval_keys], split=config.eval_split,
            results=[Path(p) for p in config.eval_results], none=False,
        )  # fmt: skip
    except PairgenError as error:
        if asked or config.only_eval or config.exclude_eval:
            raise
        say(f"evaluation instances are played too, and left to corrupt to take out ({str(error).split(':')[0]})")
        return {"sources": [], "left_out": 0}
    net, left_out = Net(split), 0
    for game in games:
        kept = [
            row for row in game["instances"]
            if bool(net.catch(InstanceKey(game["game"], row[0], row[1]), row[2])) is config.only_eval
        ]  # fmt: skip
        left_out += len(game["instances"]) - len(kept)
        game["instances"] = kept
    what = "that are no evaluation instances" if config.only_eval else "of the evaluation split"
    say(f"{left_out} instances {what} are left out")
    return {"sources": [to_dict(source) for source in split.sources], "left_out": left_out}
