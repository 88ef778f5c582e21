"""The next token of each row from its logits. Each row draws from its own random numbers, whatever shares its batch."""

from __future__ import annotations

from typing import Any

import torch

from pairgen.engines.chat import Chat
from pairgen.engines.job import Job


def next_tokens(logits: Any, jobs: list[Job], chat: Chat) -> list[int]:
    """One token a job from `logits` (jobs x vocabulary): the likeliest at temperature 0, else one that is drawn."""
    logits = _without_ends(logits, jobs, chat)
    chosen: list[int] = logits.argmax(-1).tolist()
    for cut in (False, True):
        rows = [i for i, j in enumerate(jobs) if j.sampling.temperature > 0 and (j.sampling.top_p < 1) == cut]
        if rows:
            for i, token in zip(rows, _drawn(logits[rows].float(), [jobs[i] for i in rows], cut), strict=True):
                chosen[i] = token
    return chosen


def _without_ends(logits: Any, jobs: list[Job], chat: Chat) -> Any:
    """The logits, with the ends of those replies out of reach that are too short to end."""
    barred = [(row, ends) for row, job in enumerate(jobs) if (ends := job.barred(chat))]
    if not barred:
        return logits
    logits = logits.clone()
    for row, ends in barred:
        logits[row, list(ends)] = float("-inf")
    return logits


def _drawn(logits: Any, jobs: list[Job], cut: bool) -> list[int]:
    def column(values: list[float]) -> Any:
        return torch.tensor(values, dtype=torch.float32, device=logits.device)[:, None]

    probability = (logits / column([j.sampling.temperature for j in jobs])).softmax(-1)
    names = None
    if cut:
        probability, names = probability.sort(-1, descending=True)
        before = probability.cumsum(-1) - probability
        likeliest = torch.arange(probability.shape[-1], device=logits.device) == 0
        kept = (before < column([j.sampling.top_p for j in jobs])) | likeliest
        probability = probability.where(kept, torch.zeros_like(probability))
    mass = probability.cumsum(-1)
    point = column([j.random.random() for j in jobs]) * mass[:, -1:]
    # the first token whose mass lies above the point; rounding must not carry it past the last one that has any
    last = (mass < mass[:, -1:]).sum(-1, keepdim=True)
    place = torch.searchsorted(mass, point, right=True).minimum(last)
    found: list[int] = (place if names is None else names.gather(-1, place)).squeeze(-1).tolist()
    return found
