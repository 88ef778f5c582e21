"""Where the rows of a supervised fine-tuning come from: runs, dialogues in playpen's shape, or pairs' chosen sides."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairgen import store
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Episode
from pipelines.assemble import read_runs
from pipelines.decontaminate import unmatched_experiments, unmatched_games
from pipelines.eval_split import read_eval_split
from pipelines.funnel import meaning, why_empty
from pipelines.game_masters import GameMasters
from pipelines.harvest import Caps
from pipelines.interactions import read_interactions
from pipelines.manifest import content_of
from pipelines.sft_rows import taught
from pipelines.train_config import SftConfig
from pipelines.train_pairs import Loaded, load_pairs


def load_chosen(source: str) -> Loaded:
    """The chosen sides of pairs alone: the control that imitates what DPO would prefer."""
    loaded = load_pairs(source)
    return loaded._replace(lines=(f"the chosen sides of {loaded.name} alone",), extra=())


def load_won(
    sources: Sequence[str],
    config: SftConfig,
    seed: int,
    *,
    clembench: Path | None = None,
    eval_keys: Sequence[Path] = (),
    eval_results: Sequence[Path] = (),
) -> Loaded:
    """The moves of won episodes of `sources`, evaluation instances kept out. Raises with the fix."""
    evaluation = read_eval_split(
        keys=eval_keys, split=config.eval_split, results=eval_results, none=config.no_eval_split
    )
    runs = [Path(s) for s in sources if (Path(s) / store.JOURNAL).exists()]
    others = [s for s in sources if Path(s) not in runs]
    episodes, used, homes = read_runs(runs, config.games) if runs else ([], [], {})
    for source in others:
        episodes += [e for e in read_interactions(source) if not config.games or e.game in config.games]
    if evaluation.sources and any(not (e.game and e.experiment) or e.task_id < 0 for e in episodes):
        raise PairgenError(
            f"{', '.join(others)} does not say of which game, experiment and task_id its dialogues are, so evaluation "
            "instances cannot be kept out: say --no-eval-split if the model is never to be judged on them, or give "
            "dialogues with meta."
        )
    notes = [
        *unmatched_games(evaluation, {e.game for e in episodes}),
        *unmatched_experiments(evaluation, {(e.game, e.experiment) for e in episodes}),
    ]
    with contextlib.ExitStack() as stack:
        masters = stack.enter_context(GameMasters(homes, episodes, clembench))
        made = taught(
            episodes, Caps(config.per_player, config.moves_per_game), masters.with_contents(evaluation),
            test_size=config.test_size, seed=seed, prompter=masters.first_prompts,
        )  # fmt: skip
    rows = [*made.train, *made.test]
    if not rows:
        raise PairgenError(why_empty(made.funnel))
    templates = {run.chat_template_kwargs for run in used}
    lines = []
    for stage in made.funnel:
        lines.append(f"{stage.stage}: {stage.kept} of {stage.entered} {stage.unit}")
        lines += [f"  {dropped.count} {dropped.reason} ({meaning(dropped.reason)})" for dropped in stage.dropped]
    return Loaded(
        ", ".join(Path(s).name if Path(s).exists() else s for s in sources), content_of(rows), made.train, made.test,
        Counter(), _models(episodes), templates.pop() if len(templates) == 1 else (),
        (*lines, *notes, *made.notes),
    )  # fmt: skip


def _models(episodes: Sequence[Episode]) -> tuple[str, ...]:
    return tuple(sorted({m.model for e in episodes for m in e.moves if m.model and m.player not in e.partners}))


def check_sources(sources: Sequence[str], pairs: str, said: Mapping[str, Any]) -> None:
    """Raise UsageProblem unless there is one kind of source; `said` are options that pairs have no use for."""
    if bool(sources) == bool(pairs):
        raise UsageProblem("Give runs or files of dialogues, or --from PAIRS for the chosen sides of pairs alone.")
    useless = sorted(f"--{name.replace('_', '-')}" for name, value in said.items() if value)
    if pairs and useless:
        raise UsageProblem(f"--from takes pairs as they are: leave out {', '.join(useless)}.")
