"""Synthetic episodes and strategies for the tests of the pair stages."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pairgen import store
from pairgen.records import Episode, Fault, InstanceKey, Message, Move, Pair, Player, content_id, instance_hash
from pairgen.strategy import Corruption, Decline, Material, Strategy
from pipelines import pairset
from pipelines.corrupt import Built, CorruptConfig
from pipelines.decontaminate import NO_EVAL_SPLIT, EvalSource, EvalSplit
from pipelines.funnel import ReasonCount, StageCount
from pipelines.manifest import make_manifest
from pipelines.refine import NO_QUALITY, Quality

PLAYERS = (Player("Player 1", "Giver", "tiny"), Player("Player 2", "Guesser", "tiny"))


def make_move(index: int, *, reply: str = "", player: str = "", prompt: str = "", **fields: object) -> Move:
    seat = PLAYERS[index % 2]
    known = {
        "index": index, "player": player or seat.name, "role": seat.role, "model": "tiny",
        "prompt": (Message("user", prompt or f"Say something for turn {index}."),),
        "reply": reply or f"CLUE: word {index}", "finish_reason": "stop", "prompt_tokens": 7, "completion_tokens": 4,
        "cached_tokens": 0, "token_ids": (), "violation": "",
    }  # fmt: skip
    known["raw_reply"] = known["reply"]
    return Move(**{**known, **fields})  # type: ignore[arg-type]


def make_episode(
    task_id: int = 1,
    *,
    game: str = "taboo",
    experiment: str = "high_en",
    moves: Sequence[Move] | int = 6,
    **fields: object,
) -> Episode:
    """A won episode of two model players. Each move names its instance, so that no two prompts or replies are equal."""
    if isinstance(moves, int):
        name = f"{game} {experiment} {task_id}"
        moves = [make_move(i, reply=f"CLUE: {name} {i}", prompt=f"Play {name}, turn {i}.") for i in range(moves)]
    known = {
        "game": game, "experiment": experiment, "task_id": task_id, "sample": 0, "seed": 1, "outcome": "success",
        "main_score": 100.0, "players": PLAYERS, "moves": tuple(moves), "fault": None,
        "instance_hash": instance_hash(game, {"target": f"{experiment} {task_id}"}), "clemcore_version": "3.7.2",
        "source": "rollout",
    }  # fmt: skip
    known.update(fields)
    if known["outcome"] == "error":
        known["fault"] = Fault("game_error", "it broke", len(known["moves"]))  # type: ignore[arg-type]
    return Episode(**known)  # type: ignore[arg-type]


def make_episodes(games: Sequence[str] = ("taboo", "wordle"), tasks: int = 10, **fields: object) -> list[Episode]:
    return [make_episode(task, game=game, **fields) for game in games for task in range(tasks)]  # type: ignore[arg-type]


def make_pair(task_id: int = 1, *, game: str = "taboo", experiment: str = "high_en", **fields: object) -> Pair:
    prompt, chosen = f"Play {game} {experiment} {task_id}.", f"CLUE: {game} {task_id}"
    known = {
        "prompt": (Message("user", prompt),),
        "chosen": (Message("assistant", chosen),),
        "rejected": (Message("assistant", chosen + ", I think."),),
        "strategy": "longer", "detail": "tail", "game": game,
        "experiment": experiment, "task_id": task_id, "sample": 0,
        "episode_id": f"e{task_id}", "move_id": f"m{task_id}",
        "move_index": 0, "player": "Player 1", "role": "Giver", "model": "tiny", "outcome": "success",
        "main_score": 100.0, "chosen_verdict": "accepted", "chosen_reason": "", "rejected_verdict": "violation",
        "rejected_reason": "too long", "instance_hash": instance_hash(game, {"target": f"{experiment} {task_id}"}),
        "split": "",
    }  # fmt: skip
    known.update(fields)
    known.setdefault("pair_id", content_id("pair", *(known[k] for k in sorted(known))))
    return Pair(**known)  # type: ignore[arg-type]


def eval_split(*keys: object, contents: Mapping[str, InstanceKey] = MappingProxyType({})) -> EvalSplit:
    source = EvalSource("keys", "eval.jsonl", "0123456789abcdef", len(keys), len(contents))
    return EvalSplit(frozenset(keys), contents, (source,))  # type: ignore[arg-type]


def longer(material: Material, chance: random.Random, options: Mapping[str, str]) -> Corruption:
    tail = chance.choice(["I think.", "Let me explain.", "What do you say?", "That is all."])
    return Corruption(f"{material.move.reply} {options.get('style', '')}{tail}", f"tail/{tail.split()[0]}")


def picky(material: Material, chance: random.Random, options: Mapping[str, str]) -> Corruption | Decline:
    if material.move.index % 2:
        return Decline("odd_turn")
    return Corruption(material.move.reply.upper() + "!" * chance.randint(1, 3), "shout")


STRATEGIES = {
    "longer": Strategy("longer", "the move and a sentence", longer, options={"style": "words before the sentence"}),
    "picky": Strategy("picky", "the move, shouted", picky, requires_violation=True),
    "same": Strategy("same", "the move with a space", lambda m, c, o: Corruption(f" {m.move.reply}\n", "space")),
}


def write_run(folder: Path, episodes: Sequence[Episode]) -> Path:
    """A run folder as far as the pair stages read it."""
    folder.mkdir(parents=True, exist_ok=True)
    store.write_json(
        folder / store.CONFIG,
        {
            "command": "rollout",
            "config": {"model": "/models/tiny", "temperature": 0.0, "top_p": 1.0, "max_tokens": 300},
        },
    )
    journal = store.Journal(folder)
    for episode in episodes:
        journal.append(episode)
    journal.close()
    return folder


NASTY = (
    "</script><script>window.hit=1</script>", "<img src=x onerror=window.hit=2>", "<!-- <script>",
    "]]><svg/onload=window.hit=3>",
    "javascript:window.hit=4", "{{7*7}} ${window.hit=5} <%= 1 %>", "\u202eright to left\u2066", "a\x00b\x1b[2Jc\x7f",
    "long" * 2_000, "", "🦊 👩‍👩‍👧 é 漢字", "\" ' onmouseover=window.hit=6 & &amp; &lt;",
)  # fmt: skip
"""What a model might say to a page that shows it."""


def write_pairs(
    out: Path, pairs: Sequence[Pair], episodes: Sequence[Episode] = (), quality: Quality = NO_QUALITY
) -> Path:
    """A pair set of just these pairs, each on the side of the split that it names."""
    train, test = ([p for p in pairs if p.split == side] for side in ("train", "test"))
    funnel = (StageCount("harvest", "moves", len(pairs) + 3, len(pairs), (ReasonCount("outcome_lose", 3),)),)
    built = Built(train, test, [], funnel, quality=quality)
    config = CorruptConfig(strategy=("longer",), tokenizer="tiny" if quality.tokens else "")
    made = make_manifest(built, config, NO_EVAL_SPLIT, [], episodes, [], pairset.versions(episodes))
    pairset.write_pairset(out, train, test, [], made)
    return out
