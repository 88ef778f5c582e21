"""Continuous batching over one transformers model with ordinary attention: replies join and leave at every token.

Rows are aligned at their right end. A reply that is whole leaves at once, a new one takes its place once its prompt is
computed, of which the part is left out that an earlier prompt or reply began with. Knows no engine.
"""

from __future__ import annotations

import inspect
from collections import deque
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad
from transformers import DynamicCache

from pairgen.engines.chat import Chat
from pairgen.engines.draw import next_tokens
from pairgen.engines.job import Job
from pairgen.engines.prefix import Known, Layers, PrefixStore, common

PROMPT_ROWS, PROMPT_TOKENS = 16, 2_048  # of prompts that are computed together
WASTE = 1.5  # padded tokens for each real one, at most
WORTH_WAITING = 16  # tokens that a prompt must share with another one to wait for its states


class ContinuousBatch:
    """At most `rows` replies at once, of `tokens` tokens together with their padding; `memory` bytes of prefixes."""

    def __init__(self, model: Any, chat: Chat, *, rows: int, tokens: int, memory: int) -> None:
        self._model, self._chat, self._rows, self._tokens = model, chat, rows, tokens
        self._store = PrefixStore(memory)
        self._waiting: deque[Job] = deque()
        self._jobs: list[Job] = []
        self._past: Any = None  # states of the rows: rows x heads x tokens x width in each layer
        self._lengths: list[int] = []  # tokens of each row that are in them
        known = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in known else {}

    @staticmethod
    def fits(model: Any) -> bool:
        """Whether every layer attends to all that came before, so that rows can be cut and joined."""
        config = model.config.get_text_config()
        kinds = getattr(config, "layer_types", None)
        sliding = getattr(config, "sliding_window", None) if kinds is None else None
        known = inspect.signature(model.forward).parameters
        return (
            set(kinds or ()) <= {"full_attention"}
            and not (sliding and getattr(config, "use_sliding_window", True))
            and not getattr(model, "_is_stateful", False)
            and not getattr(config, "is_encoder_decoder", False)
            and {"attention_mask", "position_ids", "past_key_values"} <= set(known)
        )

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._jobs)

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def step(self) -> list[Job]:
        """Take in what fits, then one token for every row; returns the jobs that are done."""
        with torch.inference_mode():
            self._keep([i for i, job in enumerate(self._jobs) if not job.given_up])
            done = self._take_in()
            return done + (self._advance() if self._jobs else [])

    def _take_in(self) -> list[Job]:
        new: list[Job] = []
        while self._waiting and self._has_room(new):
            job = self._waiting.popleft()
            if not job.given_up:
                new.append(job)
        done: list[Job] = []
        while new:
            group, new = self._group(new)
            done += self._compute_prompts(group)
        return done

    def _has_room(self, new: list[Job]) -> bool:
        jobs = [*self._jobs, *new, self._waiting[0]]
        return len(jobs) == 1 or (len(jobs) <= self._rows and len(jobs) * max(j.most for j in jobs) <= self._tokens)

    def _group(self, jobs: list[Job]) -> tuple[list[tuple[Job, Known | None, int]], list[Job]]:
        """Prompts to compute together, each with what is known of it, and those that have to wait for them."""
        looked_up = [(job, *self._store.longest(job.ids)) for job in jobs]
        looked_up.sort(key=lambda entry: len(entry[0].ids) - entry[2])
        group: list[tuple[Job, Known | None, int]] = []
        later: list[Job] = []
        real = 0
        for job, known, n in looked_up:
            fresh = len(job.ids) - n
            padded = (len(group) + 1) * fresh
            ids = np.asarray(job.ids)
            fits = not group or (
                len(group) < PROMPT_ROWS and padded <= PROMPT_TOKENS and padded <= WASTE * (real + fresh)
            )
            if fits and not any(common(np.asarray(o.ids), ids) >= n + WORTH_WAITING for o, _, _ in group):
                group.append((job, known, n))
                real += fresh
            else:
                later.append(job)
        return group, later

    def _compute_prompts(self, group: list[tuple[Job, Known | None, int]]) -> list[Job]:
        """The states of the prompts and their first tokens; those that go on become rows."""
        device = self._model.device
        old = max(n for _, _, n in group)
        new = max(len(job.ids) - n for job, _, n in group)
        ids = torch.zeros(len(group), new, dtype=torch.long)
        positions = torch.zeros_like(ids)
        mask = torch.zeros(len(group), old + new, dtype=torch.long)
        for row, (job, _, n) in enumerate(group):
            fresh = len(job.ids) - n
            ids[row, new - fresh :] = torch.tensor(job.ids[n:])
            positions[row, new - fresh :] = torch.arange(n, len(job.ids))
            mask[row, old - n : old] = 1
            mask[row, old + new - fresh :] = 1
        layers = _side_by_side([_first(known, n) for _, known, n in group], old) if old else []
        out = self._model(
            input_ids=ids.to(device), position_ids=positions.to(device), attention_mask=mask.to(device),
            past_key_values=_cache(layers), use_cache=True, **self._last_only,
        )  # fmt: skip
        layers = _layers(out.past_key_values)
        seen = mask.bool().to(device)
        done, going = [], []
        for row, ((job, _, n), token) in enumerate(
            zip(group, next_tokens(out.logits[:, -1], [job for job, _, _ in group], self._chat), strict=True)
        ):
            own = [(k[row][:, seen[row]], v[row][:, seen[row]]) for k, v in layers]
            job.cached = n
            self._store.put(job.ids, own)
            if job.take(token, self._chat):
                done.append(job)
            else:
                going.append((job, own))
        self._join(going)
        return done

    def _join(self, going: list[tuple[Job, Layers]]) -> None:
        if not going:
            return
        length = max([*self._lengths, *(len(job.ids) for job, _ in going)])
        new = _side_by_side([own for _, own in going], length)
        if self._jobs:
            old = [tuple(_align(t, length) for t in pair) for pair in _layers(self._past)]
            new = [(torch.cat([a, c]), torch.cat([b, d])) for (a, b), (c, d) in zip(old, new, strict=True)]
        self._past = _cache(new)
        self._lengths += [len(job.ids) for job, _ in going]
        self._jobs += [job for job, _ in going]

    def _advance(self) -> list[Job]:
        device = self._model.device
        length = max(self._lengths) + 1
        lengths = torch.tensor(self._lengths)
        mask = (torch.arange(length) >= length - 1 - lengths[:, None]).long()
        out = self._model(
            input_ids=torch.tensor([[job.said[-1]] for job in self._jobs]).to(device),
            position_ids=lengths[:, None].to(device), attention_mask=mask.to(device),
            past_key_values=self._past, use_cache=True,
        )  # fmt: skip
        self._past = out.past_key_values
        self._lengths = [n + 1 for n in self._lengths]
        ended = [
            job.take(token, self._chat)
            for job, token in zip(self._jobs, next_tokens(out.logits[:, -1], self._jobs, self._chat), strict=True)
        ]
        done = [job for job, end in zip(self._jobs, ended, strict=True) if end]
        for row, job in enumerate(self._jobs):
            if ended[row]:
                self._store.put([*job.ids, *job.said[:-1]], self._row(row))
        self._keep([row for row, end in enumerate(ended) if not end])
        return done

    def _row(self, row: int) -> Layers:
        n = self._lengths[row]
        return [(keys[row, :, -n:].clone(), values[row, :, -n:].clone()) for keys, values in _layers(self._past)]

    def _keep(self, rows: list[int]) -> None:
        """Drop all other rows, and the padding that only they needed."""
        if len(rows) == len(self._jobs):
            return
        self._jobs = [self._jobs[i] for i in rows]
        self._lengths = [self._lengths[i] for i in rows]
        n = max(self._lengths, default=0)
        kept = [(keys[rows, :, -n:], values[rows, :, -n:]) for keys, values in _layers(self._past)] if rows else []
        self._past = _cache(kept)


def _first(known: Known | None, n: int) -> Layers:
    return [(k[:, :n], v[:, :n]) for k, v in known.layers] if known else []


def _align(states: Any, length: int) -> Any:
    """The states with padding on their left, so that they are `length` tokens long."""
    short = length - states.shape[-2]
    return pad(states, (0, 0, short, 0)) if short else states


def _side_by_side(rows: list[Layers], length: int) -> Layers:
    """Rows as one batch, aligned at their right end; an empty row is all padding."""
    shape = next(row for row in rows if row)
    joined = []
    for layer, (key, value) in enumerate(shape):
        keys = key.new_zeros(len(rows), key.shape[0], length, key.shape[2])
        values = value.new_zeros(len(rows), value.shape[0], length, value.shape[2])
        for i, row in enumerate(rows):
            if row and row[layer][0].shape[1]:
                keys[i, :, -row[layer][0].shape[1] :] = row[layer][0]
                values[i, :, -row[layer][1].shape[1] :] = row[layer][1]
        joined.append((keys, values))
    return joined


def _cache(layers: Layers) -> Any:
    cache = DynamicCache()
    for i, (keys, values) in enumerate(layers):
        cache.update(keys, values, i)
    return cache


def _layers(cache: Any) -> Layers:
    if hasattr(cache, "layers"):
        return [(layer.keys, layer.values) for layer in cache.layers]
    return list(zip(cache.key_cache, cache.value_cache, strict=True))  # transformers before 4.54
