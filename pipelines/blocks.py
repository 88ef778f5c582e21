"""Blocks: messages and rows for a page, each message once, compressed in pieces that a browser unpacks one by one.

Conversations are a tree: a *node* is one message after another node (0 is the empty conversation), so a prompt that
goes on from an earlier one costs what it adds. Texts, nodes and names have numbers in the order in which they came.
Memory holds a hash of each text and a number for each node, never the texts. Knows no pair and no episode.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable
from typing import IO, Any

from pairgen.records import Message

TEXT_CHARACTERS = 400_000
ROWS = 2_000


class Blocks:
    """Writes blocks to `file` as inert script elements; call `close` for what is left.

    A block is a JSON object: of kind `texts` with `first` and `texts`, or of kind `rows` with the `rows`, and the
    `names` and `nodes` ([parent, role, text]) that are new in it.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._texts: dict[bytes, int] = {}
        self._nodes: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._open_texts: list[str] = []
        self._open_size = 0
        self._open_nodes: list[tuple[int, int, int]] = []
        self._open_names: list[str] = []
        self._rows: list[list[Any]] = []
        self.rows = self.blocks = self.characters = 0

    @property
    def texts(self) -> int:
        return len(self._texts)

    def name(self, text: str) -> int:
        """The number of a short text of which there are few: a game, a verdict."""
        if text not in self._names:
            self._names[text] = len(self._names)
            self._open_names.append(text)
        return self._names[text]

    def text(self, text: str) -> int:
        """The number of any text."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = self._texts.get(digest)
        if number is None:
            number = self._texts[digest] = len(self._texts)
            self._open_texts.append(text)
            self._open_size += len(text)
            self.characters += len(text)
            if self._open_size >= TEXT_CHARACTERS:
                self._flush_texts()
        return number

    def talk(self, messages: Iterable[Message], after: int = 0) -> int:
        """The node at the end of these messages, which come after the node `after`."""
        for message in messages:
            role, text = self.name(message.role), self.text(message.content)
            key = (after << 64) | (text << 24) | role
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = len(self._nodes) + 1
                self._open_nodes.append((after, role, text))
            after = node
        return after

    def row(self, row: list[Any]) -> None:
        self._rows.append(row)
        self.rows += 1
        if len(self._rows) >= ROWS:
            self._flush_rows()

    def close(self) -> None:
        self._flush_texts()
        self._flush_rows()

    def _flush_texts(self) -> None:
        if self._open_texts:
            first = len(self._texts) - len(self._open_texts)
            self._write("texts", {"first": first, "texts": self._open_texts}, f' data-first="{first}"')
            self._open_texts, self._open_size = [], 0

    def _flush_rows(self) -> None:
        if self._rows:
            self._write("rows", {"names": self._open_names, "nodes": self._open_nodes, "rows": self._rows})
            self._open_names, self._open_nodes, self._rows = [], [], []

    def _write(self, kind: str, data: dict[str, Any], more: str = "") -> None:
        packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode("ascii"), 6, mtime=0)
        self.blocks += 1
        self._file.write(f'<script type="text/plain" class="block" data-kind="{kind}"{more}>'.encode())
        self._file.write(base64.b64encode(packed))
        self._file.write(b"</script>\n")
