"""An evaluation instance goes with all of its pairs, whichever net catches it; what the nets cannot see is told."""

import random
from typing import NamedTuple

from factories import eval_split, make_pair
from test_template import RULES, WORDS

from pairgen.records import Drop, InstanceKey, Message, Pair
from pipelines.decontaminate import NO_EVAL_SPLIT, Net, caught
from pipelines.first_prompts import EvalPrompt, Templates, first_of
from pipelines.screen import Played, Prompted, Removed, ask_nobody, removed, screen
from pipelines.slim import frame_of, parted, slim

GUESS = (Message("user", "Guess the word."),)


def giving(task, **fields):
    word = WORDS[task % len(WORDS)]
    prompt = (Message("user", RULES.format(word, word[:2], word[-2:])),)
    return make_pair(task, role="Giver", prompt=prompt, instance_hash="", pair_id=f"give {task:02}", **fields)


def guessing(task):
    return make_pair(task, role="Guesser", prompt=GUESS, instance_hash="", pair_id=f"guess {task:02}")


def first_prompts(pairs):
    return [EvalPrompt(p.instance, p.role, first_of(p.prompt)) for p in pairs]


class Out(NamedTuple):
    kept: list[Pair]
    drops: list[Drop]
    removed: tuple[Removed, ...]
    notes: tuple[str, ...]
    templates: Templates


def screened(pairs, split, prompter=ask_nobody, played=()):
    net = Net(split)
    prompts = played or first_prompts(pairs)
    made = screen(Played(prompts, [p for p in prompts if net.known(p.key)]), split, net, prompter)
    net.note(made.found)
    rows = slim(frame_of(pairs))
    decided = caught(rows, net)
    return Out(*parted(pairs, decided, "decontaminate"), removed(rows, decided), made.notes, made.templates)


def told(*pairs):
    """Game masters that know what these ask, each instance under a number that is 100 higher."""
    asked = []

    def prompter(keys):
        asked.append(list(keys))
        known = {p.key._replace(task_id=p.key.task_id + 100): p for p in first_prompts(pairs)}
        prompts = [known[key]._replace(key=key) for key in keys if key in known]
        return Prompted(prompts, {key: "the game has no such instance" for key in keys if key not in known})

    return asked, prompter


def keys_of(*pairs):
    return [p.instance._replace(task_id=p.task_id + 100) for p in pairs]


def test_an_instance_caught_by_one_players_prompt_goes_with_the_pairs_of_all():
    pairs = [make(t) for t in range(12) for make in (giving, guessing)]
    asked, prompter = told(giving(3))
    made = screened(pairs, eval_split(*keys_of(giving(3))), prompter)
    assert [(d.item_id, d.reason, d.kept_id) for d in made.drops] == [
        ("give 03", "eval_prompt", "taboo/high_en/103"), ("guess 03", "eval_prompt", "taboo/high_en/103"),
    ]  # fmt: skip
    assert len(made.kept) == 22 and asked == [keys_of(giving(3))] and not made.notes
    assert [(r.task_id, r.net, r.evaluation, r.pairs) for r in made.removed] == [
        (3, "eval_prompt", "taboo/high_en/103", 2)
    ]


def test_an_instance_is_known_by_the_prompt_of_a_player_who_has_no_pair():
    _, prompter = told(giving(3))
    played = first_prompts([make(t) for t in range(12) for make in (giving, guessing)])
    made = screened([guessing(t) for t in range(12)], eval_split(*keys_of(giving(3))), prompter, played)
    assert [d.item_id for d in made.drops] == ["guess 03"]


def test_nobody_is_asked_about_what_is_known_or_of_a_game_that_is_gone():
    asked, prompter = told()
    split = eval_split(*(p.instance for p in map(giving, range(3))), InstanceKey("chess", "x", 1))
    made = screened([giving(t) for t in range(12)], split, prompter, first_prompts(map(giving, range(12))))
    assert not asked and [r.net for r in made.removed] == ["eval_key"] * 3


def test_what_could_not_be_compared_is_told():
    _, prompter = told(giving(3))
    made = screened([giving(t) for t in range(12)], eval_split(*keys_of(giving(3), giving(5))), prompter)
    assert len(made.notes) == 1 and "1 of taboo" in made.notes[0] and "no such instance" in made.notes[0]
    alone = screened([giving(t) for t in range(12)], eval_split(*keys_of(giving(3))))
    assert "no game master was asked" in alone.notes[0] and len(alone.kept) == 12


def test_a_game_whose_prompts_are_all_the_same_is_told():
    _, prompter = told(*map(guessing, range(6)))
    made = screened([guessing(t) for t in range(12)], eval_split(*keys_of(*map(guessing, range(6)))), prompter)
    assert len(made.kept) == 12 and "taboo are the same for all instances" in made.notes[0]


def test_without_an_evaluation_split_nothing_goes_and_templates_are_there():
    made = screened([giving(t) for t in range(12)], NO_EVAL_SPLIT)
    assert len(made.kept) == 12 and not made.removed and not made.notes
    assert made.templates["taboo", "giver"].asks(first_of(giving(3).prompt), "high_en").split()[0] == WORDS[3]
    assert not screened([], NO_EVAL_SPLIT).kept


def test_the_order_of_pairs_does_not_matter():
    pairs = [make(t) for t in range(12) for make in (giving, guessing)]
    split = eval_split(*keys_of(giving(3), giving(7)), giving(1).instance)
    first, second = (
        screened(order, split, told(giving(3), giving(7))[1]) for order in (pairs, random.Random(1).sample(pairs, 24))
    )
    assert {p.pair_id for p in first.kept} == {p.pair_id for p in second.kept} and len(first.kept) == 18
    assert first.removed == second.removed and first.notes == second.notes
