"""A prompt's text to token ids in pieces that are remembered: of a dialogue that grew, only what is new is encoded.

A text is cut where one of the tokenizer's own special tokens begins; which tokenizers allow that is `tear`'s to say.
Knows neither messages nor templates.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from pairgen.engines.tear import tearable

ROOM = 64 << 20  # bytes a generation: 1,000 dialogues of 8,000 tokens
ENTRY = 100  # bytes of a dictionary's entry, about


class Pieces:
    """Remembers the ids of pieces of text, those asked for last; any thread may ask.

    There are two generations: when the young one has grown to `room` bytes the old one is dropped, so that whatever was
    in use since the last drop stays.
    """

    def __init__(self, backend: Any, marks: Iterable[str], room: int = ROOM) -> None:
        self._backend, self._room = backend, room
        self._mark = re.compile("|".join(map(re.escape, marks)))
        self._young: dict[str, array[int]] = {}
        self._old: dict[str, array[int]] = {}
        self._bytes = 0

    def cut(self, text: str) -> list[str]:
        """The pieces of a text, in order; each but the first begins with a mark, and none holds another one."""
        starts = [m.start() for m in self._mark.finditer(text)]
        if not starts or starts[0] > 0:
            starts.insert(0, 0)
        return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]

    def new(self, pieces: Iterable[str]) -> int:
        """The number of characters that `encode` would have to encode."""
        return sum(len(p) for p in pieces if p not in self._young and p not in self._old)

    def encode(self, pieces: Sequence[str], *, aside: bool = False) -> list[int]:
        """The ids of all pieces together; `aside` lets other threads run meanwhile, which costs more for a short text.

        Raises what the tokenizer raises for a text that it cannot take, such as half a surrogate pair.
        """
        if aside:
            unknown = [p for p in dict.fromkeys(pieces) if p not in self._young and p not in self._old]
            made = self._backend.encode_batch_fast(unknown, add_special_tokens=False)
            for piece, encoding in zip(unknown, made, strict=True):
                self._keep(piece, encoding.ids)
        whole = array("I")
        for piece in pieces:
            ids = self._young.get(piece)
            whole += self._find(piece) if ids is None else ids
        return whole.tolist()

    def _find(self, piece: str) -> array[int]:
        """Of a piece that is not among the young ones."""
        known = self._old.get(piece)
        return self._keep(piece, self._backend.encode(piece, add_special_tokens=False).ids if known is None else known)

    def _keep(self, piece: str, ids: Sequence[int]) -> array[int]:
        if self._bytes > self._room:
            self._old, self._young, self._bytes = self._young, {}, 0
        kept = self._young[piece] = array("I", ids)
        self._bytes += sys.getsizeof(piece) + sys.getsizeof(kept) + ENTRY
        return kept


def find_pieces(tokenizer: Any) -> Pieces | None:
    """The pieces of a tokenizer whose texts can be cut, None for any other."""
    marks = tearable(tokenizer)
    return Pieces(tokenizer.backend_tokenizer, marks) if marks else None
