"""Writes in/instances.json of hintmatch: `python instancegenerator.py`. The same seed gives the same bytes."""

import random
from pathlib import Path
from typing import Any

from clemcore.clemgame import GameInstanceGenerator

SEED = 7402
INSTANCES = 20
OPTIONS = 2


class HintmatchInstanceGenerator(GameInstanceGenerator):
    """Every word is the secret once. The other option is of another kind, or of the same kind where it is hard."""

    def on_generate(self, seed: int, **kwargs: Any) -> None:
        rng = random.Random(seed)
        kinds: dict[str, dict[str, str]] = self.load_json("resources/words")
        secrets = [(kind, word) for kind, words in kinds.items() for word in words]
        rng.shuffle(secrets)
        for name in ("far_words", "near_words"):
            experiment = self.add_experiment(name)
            experiment["hinter_prompt"] = self.load_template("resources/hinter").rstrip("\n")
            experiment["matcher_prompt"] = self.load_template("resources/matcher").rstrip("\n")
            for game_id in range(INSTANCES):
                kind, secret = secrets.pop()
                near = [word for word in kinds[kind] if word != secret]
                far = [word for other in kinds if other != kind for word in kinds[other]]
                others = rng.sample(near if name == "near_words" else far, OPTIONS - 1)
                instance = self.add_game_instance(experiment, game_id)
                instance["secret"] = secret
                instance["notes"] = kinds[kind][secret]
                instance["options"] = rng.sample([secret, *others], OPTIONS)


if __name__ == "__main__":
    HintmatchInstanceGenerator(str(Path(__file__).parent)).generate(seed=SEED)
