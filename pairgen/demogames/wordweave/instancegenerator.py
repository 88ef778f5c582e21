"""Writes in/instances.json of wordweave: `python instancegenerator.py`. The same seed gives the same bytes."""

import random
from pathlib import Path
from typing import Any

from clemcore.clemgame import GameInstanceGenerator

SEED = 7401
INSTANCES = 18
MAX_WORDS = 12
EXPERIMENTS = {"three_words": ["doers", "deeds", "places"], "four_words": ["doers", "deeds", "places", "things"]}


class WordweaveInstanceGenerator(GameInstanceGenerator):
    """An instance has a doer, a deed and a place, and a thing where it is hard; no word twice in an experiment."""

    def on_generate(self, seed: int, **kwargs: Any) -> None:
        rng = random.Random(seed)
        words: dict[str, list[str]] = self.load_json("resources/words")
        for name, kinds in EXPERIMENTS.items():
            experiment = self.add_experiment(name)
            experiment["max_words"] = MAX_WORDS
            experiment["prompt"] = self.load_template("resources/weaver").rstrip("\n")
            columns = [rng.sample(words[kind], INSTANCES) for kind in kinds]
            for game_id, drawn in enumerate(zip(*columns, strict=True)):
                self.add_game_instance(experiment, game_id)["words"] = list(drawn)


if __name__ == "__main__":
    WordweaveInstanceGenerator(str(Path(__file__).parent)).generate(seed=SEED)
