"""What games written for older versions of their libraries miss. Each entry says who needs it. Runs in a worker."""

from __future__ import annotations

from typing import Any

from clemcore.clemgame.events import GameEventLogger


def restore_numpy_names() -> None:
    """NumPy 2 took names away that scorers of clembench's September 2025 games use (textmapworld: `np.NaN`)."""
    import numpy

    for old, new in {"NaN": "nan", "NAN": "nan", "Inf": "inf", "float_": "float64"}.items():
        if not hasattr(numpy, old):
            setattr(numpy, old, getattr(numpy, new))


class SetupKeys(GameEventLogger):
    """Keeps the keys that a game logs during its set-up, when clemcore 3.7 has no recorder registered yet.

    adventuregame logs there what its scorer needs; without this, its episodes could be played but not scored.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}

    def log_key(self, key: str, value: Any) -> None:
        self.keys[key] = value

    def log_next_round(self) -> None:
        pass

    def log_game_end(self, auto_count_logging: bool = True) -> None:
        pass

    def count_request(self) -> None:
        pass

    def count_request_violation(self) -> None:
        pass

    def log_player(self, player_name: str, game_role: str, model_name: str) -> None:
        pass

    def log_event(self, from_: str, to: str, action: dict[str, Any], call: Any = None) -> None:
        pass
