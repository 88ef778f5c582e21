"""Importing clemcore without its client and server for OpenEnv, which no worker uses and whose web interface takes most
of the time that clemcore needs to be imported. Imports nothing of clemcore.
"""

from __future__ import annotations

import sys
import types

MODULES = ("clemcore.clemgame.envs.openenv.client", "clemcore.clemgame.envs.openenv.models")


class _StandIn(types.ModuleType):
    """Has a class of every name that is asked of it, so that `from … import …` goes on."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__})


def leave_out_openenv() -> None:
    """To be called before clemcore is imported; does nothing about what is imported already."""
    for name in MODULES:
        sys.modules.setdefault(name, _StandIn(name, "Left out: no worker of pairgen serves or asks OpenEnv."))
