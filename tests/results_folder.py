"""Writes small clembench results for tests, in any of clemcore's layouts."""

import json
from pathlib import Path

SCRIPTED = "programmatic"


def ask(player, content, label="context"):
    return _event("GM", player, "send message", content, label)


def say(player, content, label="response"):
    return _event(player, "GM", "get message", content, label)


def note(kind, content):
    return _event("GM", "GM", kind, content)


def _event(sender, receiver, kind, content, label=None):
    action = {"type": kind, "content": content}
    return {"from": sender, "to": receiver, "action": {**action, "label": label} if label else action}


def scores(outcome, main=None):
    flags = {name: int(outcome == name.lower()) for name in ("Aborted", "Lose", "Success")}
    return {**flags, "Main Score": float("nan") if main is None else main}


def llama(messages):
    """A chat as a template renders it, with the template's own system text."""
    turns = "".join(
        f"<|start_header_id|>{m['role']}<|end_header_id|>\n\n{m['content'].strip()}<|eot_id|>" for m in messages
    )
    system = "<|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
    return f"<|begin_of_text|>{system}{turns}<|start_header_id|>assistant<|end_header_id|>\n\n"


def local_call(messages, reply, stamp="", end="<|eot_id|>"):
    """A call as the local backend records it."""
    text = llama(messages)
    return {
        "timestamp": stamp,
        "manipulated_prompt_obj": {"inputs": text, "max_new_tokens": 300},
        "raw_response_obj": {"response": text + reply + end, "clem_player": {"response": reply}},
    }


def api_call(messages, reply, stamp="", reason="stop"):
    """A call as the API backends record it."""
    choice = {"message": {"role": "assistant", "content": f"{reply}\n"}, "finish_reason": reason}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
    return {
        "timestamp": stamp,
        "manipulated_prompt_obj": messages,
        "raw_response_obj": {"choices": [choice], "usage": usage, "clem_player": {"response": reply}},
    }


def chat(*contents):
    """Contents as messages of user and assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": c} for i, c in enumerate(contents)]


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def write_episode(
    folder: Path, events, *, game="taboo", experiment="high_en", task=4, players=None, score=None, calls=None,
    own_calls=None, instance=None, meta=None,
):  # fmt: skip
    """One episode folder. `calls` is a list for requests.json, `own_calls` a dictionary from player to list."""
    players = players or {"Player 1": ("Describer", "small"), "Player 2": ("Guesser", "small")}
    seated = {"GM": ("Game Master", SCRIPTED), **players}
    stamped = [{**e, "timestamp": f"2025-07-14T22:32:{i:02}.000001"} for i, e in enumerate(events)]
    data = {
        "meta": {"game_name": game, "experiment_name": experiment, "game_id": task, "clem_version": "3.2.0"},
        "players": {name: {"game_role": role, "model_name": model} for name, (role, model) in seated.items()},
        "turns": [stamped[:2], stamped[2:]],
    }
    if meta is not None:
        data["meta"] = meta
    write(folder / "interactions.json", data)
    write(folder / "instance.json", instance or {"game_id": task, "target_word": f"word{task}"})
    write(folder.parent / "experiment.json", {"name": experiment, "game_name": game})
    if score is not None:
        write(folder / "scores.json", {"episode scores": score})
    if calls is not None:
        write(folder / "requests.json", calls)
    for player, entries in (own_calls or {}).items():
        wrapped = {"meta": {"player_name": player}, "calls": [{"round": 0, "call": c} for c in entries]}
        write(folder / f"{player.lower().replace(' ', '_')}.requests.json", wrapped)
    return folder


def taboo(end="success"):
    """A short game of two players; the second has an initial prompt of its own."""
    events = [
        ask("Player 1", "Describe jan."),
        say("Player 1", "CLUE: a month"),
        note("valid clue", "a month"),
        ask("Player 2", "You guess.\n", "initial prompt"),
        ask("Player 2", "CLUE: a month"),
        say("Player 2", "GUESS: may"),
        note("valid guess", "may"),
        ask("Player 1", "GUESS: may"),
    ]
    if end == "success":
        return [
            *events,
            say("Player 1", "CLUE: the first"),
            note("valid clue", "the first"),
            ask("Player 2", "CLUE: the first"),
            say("Player 2", "GUESS: jan"),
            note("correct guess", "end game"),
        ]
    return [*events, say("Player 1", "january"), note("invalid format", "abort game")]


TABOO_PROMPTS = [
    chat("Describe jan."),
    chat("You guess.\n\n\nCLUE: a month"),
    chat("Describe jan.", "CLUE: a month", "GUESS: may"),
    chat("You guess.\n\n\nCLUE: a month", "GUESS: may", "CLUE: the first"),
]
TABOO_REPLIES = ["CLUE: a month", "GUESS: may", "CLUE: the first", "GUESS: jan"]
TABOO_STAMPS = [f"2025-07-14T22:32:{i:02}.000001" for i in (1, 5, 8, 11)]


def taboo_calls(call=local_call):
    return [call(p, r, s) for p, r, s in zip(TABOO_PROMPTS, TABOO_REPLIES, TABOO_STAMPS, strict=True)]
