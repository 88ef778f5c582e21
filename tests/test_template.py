"""What prompts share is template, what remains names the task; with few prompts nothing is guessed."""

import random

import pytest

from pipelines.template import MIN_INSTANCES, UNKNOWN, Prompt, learn

RULES = "You describe a word.\nYour target word is: {}\nDo not say:\n- {}\n- {}\n\nMake it short, in 1 to 3 sentences."
WORDS = ["apple", "river", "stone", "cloud", "table", "mouse", "train", "violin", "desk", "tiger", "lamp", "boat"]


def prompts(count=12, rules=RULES, experiment="easy"):
    return [
        Prompt(experiment, i, rules.format(WORDS[i], WORDS[(i + 3) % 12], WORDS[(i + 5) % 12])) for i in range(count)
    ]


def test_the_target_word_remains():
    template = learn(prompts())
    assert template.remainder(prompts()[0].text) == "apple\n- cloud\n- mouse"
    assert template.knows(prompts()[0].text, "easy")


def test_a_prompt_that_was_not_learned_from_leaves_its_word_too():
    template = learn(prompts(10))
    assert "lamp" in template.asks(prompts()[10].text, "easy").split()
    assert "target" not in template.asks(prompts()[10].text, "easy")


@pytest.mark.parametrize("count", range(MIN_INSTANCES))
def test_with_a_few_instances_the_whole_prompt_counts(count):
    template = learn(prompts(count))
    assert not template.knows(prompts()[0].text, "easy")
    assert template.asks(prompts()[0].text, "easy") == prompts()[0].text
    assert UNKNOWN.asks("x") == "x"


def test_a_grid_remains_though_its_rows_are_common():
    chance = random.Random(1)
    grids = [["".join(chance.choice("X.") + " " for _ in range(5)) for _ in range(5)] for _ in range(30)]
    learned = [
        Prompt("grids", i, "This is your grid:\n" + "\n".join(g) + "\nAsk one question.") for i, g in enumerate(grids)
    ]
    template = learn(learned)
    left = {template.asks(p.text, "grids") for p in learned}
    assert len(left) == len({p.text for p in learned}) and all("question" not in text for text in left)
    assert min(len(text.split()) for text in left) >= 20


def test_numbers_that_differ_remain_and_numbers_of_the_rules_do_not():
    learned = [Prompt("", i, f"You have 5 guesses.\nThe board is {i + 10} by {i + 20}.") for i in range(8)]
    assert learn(learned).asks(learned[3].text) == "13 by 23 ."


def test_an_experiment_may_have_a_template_of_its_own():
    hard = "Zwei Wörter sind zu umschreiben.\nDas Wort: {}\nVerboten: {} {}\nNur ein Satz."
    template = learn([*prompts(9), *prompts(6, hard, "hard")])
    asks = template.asks(hard.format("apple", "cloud", "mouse"), "hard")
    assert set(asks.split()) == {"apple", "cloud", "mouse"}
    assert not template.knows("Something else altogether is asked here, of another kind.", "third")


def test_variants_within_an_experiment_are_told_by_how_they_begin():
    other = "Someone else has a word and you are to guess it.\nHint: {} {} {}\nAnswer at once."
    template = learn([*prompts(8), *[p._replace(instance=-1 - p.instance) for p in prompts(8, other)]])
    assert set(template.asks(other.format("apple", "cloud", "mouse"), "easy").split()) == {"apple", "cloud", "mouse"}


def test_a_prompt_that_all_instances_share_asks_nothing():
    template = learn([Prompt("", i, "Guess the word.\nIt has five letters.") for i in range(6)])
    assert template.asks("Guess the word.\nIt has five letters.") == ""


def test_what_differs_in_order_alone_still_asks_something():
    grids = ["x x\nx x", "o o\no x", "x o\no o"]
    learned = [
        Prompt("", i, f"Three grids.\n{grids[i % 3]}\n{grids[(i + 1 + i // 3) % 3]}\n{grids[(i + 2 + i // 3) % 3]}")
        for i in range(6)
    ]
    template = learn(learned)
    assert len({template.asks(p.text) for p in learned}) == len({p.text for p in learned}) > 1


def test_order_and_repeats_do_not_matter():
    learned = [*prompts(), *prompts(rules=RULES.upper(), experiment="other")]
    shuffled = random.Random(0).sample(learned, len(learned)) + learned[:5]
    one, two = learn(learned), learn(shuffled)
    assert (one.lines, one.grams, one.kinds, one.plain) == (two.lines, two.grams, two.kinds, two.plain)
