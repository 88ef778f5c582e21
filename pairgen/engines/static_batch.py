"""Batches for models whose states cannot be cut and joined (sliding windows, linear attention): `generate` as it is.

A batch lasts as long as its longest reply. Draws come from one seed a batch, made of the seeds of its jobs: the same
jobs in the same batch give the same replies, and no more than that. Knows no engine.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from transformers import GenerationConfig

from pairgen.engines.chat import Chat
from pairgen.engines.job import Job
from pairgen.records import content_id


class StaticBatch:
    """At most `rows` replies at once, of `tokens` tokens together with their padding."""

    def __init__(self, model: Any, chat: Chat, *, rows: int, tokens: int) -> None:
        self._model, self._chat, self._rows, self._tokens = model, chat, rows, tokens
        self._waiting: deque[Job] = deque()
        pad_id = chat.tokenizer.pad_token_id
        self._pad = chat.end_ids[0] if pad_id is None else pad_id
        # the model's own file would otherwise fill in top_k and penalties
        model.generation_config = GenerationConfig(eos_token_id=list(chat.end_ids), pad_token_id=self._pad)

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def step(self) -> list[Job]:
        """Make the replies of one batch; returns its jobs, all done."""
        jobs = self._next()
        if not jobs:
            return []
        width = max(len(job.ids) for job in jobs)
        ids = torch.full((len(jobs), width), self._pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, job in enumerate(jobs):
            ids[row, width - len(job.ids) :] = torch.tensor(job.ids)
            mask[row, width - len(job.ids) :] = 1
        device = self._model.device
        with torch.inference_mode(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            seeds = [job.random.getrandbits(64) for job in jobs]
            torch.manual_seed(int(content_id(seeds), 16) >> 1)
            out = self._model.generate(
                input_ids=ids.to(device), attention_mask=mask.to(device), max_new_tokens=max(
                    job.sampling.max_tokens for job in jobs), **_drawing(jobs[0], self._chat)
            )  # fmt: skip
        for job, row in zip(jobs, out[:, width:].tolist(), strict=True):
            for token in row:
                if job.take(token, self._chat):
                    break
        return jobs

    def _next(self) -> list[Job]:
        """The job that waits longest, and those of its kind whose prompts are closest in length."""
        alive = [job for job in self._waiting if not job.given_up]
        jobs: list[Job] = []
        if alive:
            first = alive[0]
            alike = [j for j in alive if _drawing(j, self._chat) == _drawing(first, self._chat)]
            alike.sort(key=lambda j: (j is not first, abs(len(j.ids) - len(first.ids))))
            for job in alike[: self._rows]:
                if not jobs or (len(jobs) + 1) * max(j.most for j in [*jobs, job]) <= self._tokens:
                    jobs.append(job)
        self._waiting = deque(j for j in alive if j not in jobs)
        return jobs


def _drawing(job: Job, chat: Chat) -> dict[str, Any]:
    sampling = job.sampling
    short = {"min_new_tokens": sampling.min_tokens, "eos_token_id": list(chat.ends_of(sampling))}
    held = short if sampling.min_tokens else {}
    if sampling.temperature <= 0:
        return {"do_sample": False, **held}
    return {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0, **held}
