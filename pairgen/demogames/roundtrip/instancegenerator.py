"""Writes in/instances.json of roundtrip: `python instancegenerator.py`. The same seed gives the same bytes."""

import random
from pathlib import Path
from typing import Any

from clemcore.clemgame import GameInstanceGenerator

SEED = 7403
INSTANCES = 14
STOPS = {"near": 2, "far": 3}


class RoundtripInstanceGenerator(GameInstanceGenerator):
    """Every country of a list comes up equally often, never twice on one trip."""

    def on_generate(self, seed: int, **kwargs: Any) -> None:
        rng = random.Random(seed)
        countries: dict[str, list[list[str]]] = self.load_json("resources/countries")
        for name, length in STOPS.items():
            experiment = self.add_experiment(name)
            experiment["prompt"] = self.load_template("resources/traveller").rstrip("\n")
            experiment.update(self.load_json("resources/turns"))
            for game_id, trip in enumerate(draw_trips(rng, countries[name], length)):
                stops = [
                    {"country": country, "capital": capital, "names": draw_names(rng, countries[name], capital)}
                    for country, capital in trip
                ]
                self.add_game_instance(experiment, game_id)["stops"] = stops


def draw_trips(rng: random.Random, countries: list[list[str]], length: int) -> list[list[list[str]]]:
    """The trips of one experiment, cut one after the other from shuffled passes over all countries."""
    line: list[list[str]] = []
    while len(line) < INSTANCES * length:
        line += rng.sample(countries, len(countries))
    return [line[start : start + length] for start in range(0, INSTANCES * length, length)]


def draw_names(rng: random.Random, countries: list[list[str]], capital: str) -> list[str]:
    """What the player is told after a wrong name: the capital and another one, in either order."""
    other = rng.choice([name for _, name in countries if name != capital])
    return rng.sample([capital, other], 2)


if __name__ == "__main__":
    RoundtripInstanceGenerator(str(Path(__file__).parent)).generate(seed=SEED)
