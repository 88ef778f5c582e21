"""Instances that take long to set up, kept as they were set up: other samples of one, and replays, start from a copy.

Runs in a worker. An instance whose set-up drew random numbers is never kept: each episode has its own seed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from pairgen.clem.table import Table

SLOW_S = 0.2  # of processor time; a copy of what is slower to set up costs less than a tenth of it
MOST = 8


class Setups:
    """At most `MOST` tables as they stood when they were opened, those last used."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Table] = OrderedDict()

    def table(self, key: Hashable, seed: int, make: Callable[[], Table]) -> Table:
        """A table at instance `key` for an episode with this seed: a copy of a kept one, or one that is yet to open."""
        if key not in self._kept:
            return make()
        self._kept.move_to_end(key)
        return self._kept[key].again(seed)

    def open(self, key: Hashable, table: Table) -> dict[str, Any]:
        """What the table asks first. Raises GameFault."""
        started = time.process_time()
        step = table.open()
        if time.process_time() - started > SLOW_S and key not in self._kept and table.undrawn:
            self._kept[key] = table.copy()
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return step
