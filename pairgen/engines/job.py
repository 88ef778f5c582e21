"""One reply in the making, as the batches of the transformers engine hand it on. Knows no model."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from pairgen.engines import Completion, Sampling
from pairgen.engines.chat import Chat


@dataclass(eq=False)
class Job:
    """A prompt, how its reply is drawn, and the tokens of the reply so far; `done` is set when the reply is whole."""

    ids: list[int]
    sampling: Sampling
    reply: Any  # the asyncio.Future of whoever waits
    said: list[int] = field(default_factory=list)
    cached: int = 0
    done: Completion | None = None
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.sampling.seed)

    @property
    def given_up(self) -> bool:
        """Nobody waits for it any more."""
        return bool(self.reply.done())

    @property
    def most(self) -> int:
        """Tokens that prompt and reply can have together."""
        return len(self.ids) + self.sampling.max_tokens

    def barred(self, chat: Chat) -> tuple[int, ...]:
        """The tokens that may not come next, since the reply is too short to end."""
        return chat.ends_of(self.sampling) if len(self.said) < self.sampling.min_tokens else ()

    def take(self, token: int, chat: Chat) -> bool:
        """Add a token; True when the reply ended with it, and `done` holds the completion."""
        self.said.append(token)
        if token in chat.ends_of(self.sampling):
            return self._finish(chat, "stop")
        if self.sampling.stop and len(self.said) > self.sampling.min_tokens:
            text = chat.decode(self.said)
            free = len(chat.decode(self.said[: self.sampling.min_tokens])) if self.sampling.min_tokens else 0
            cuts = [at for at in (text.find(stop, free) for stop in self.sampling.stop) if at >= 0]
            if cuts:
                return self._finish(chat, "stop", text[: min(cuts)])
        if len(self.said) >= self.sampling.max_tokens:
            return self._finish(chat, "length")
        return False

    def _finish(self, chat: Chat, reason: str, text: str | None = None) -> bool:
        ids = chat.without_end(self.said, chat.ends_of(self.sampling))
        text = chat.decode(ids) if text is None else text
        self.done = Completion(text, reason, len(self.ids), len(self.said), self.cached, ids)
        return True
