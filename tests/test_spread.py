"""Of what a prompt could have, as many different replies as fit are shown, whatever the order they come in."""

import random
from collections import Counter

from factories import make_pair

from pairgen.records import Message
from pipelines.spread import spread


def prompt_of(chosen, rejected, task=1, start=0):
    return [
        make_pair(task, chosen=(Message("assistant", f"won {c}"),), rejected=(Message("assistant", f"lost {r}"),),
                  move_id=f"{task} {c + start}")
        for c in range(chosen) for r in range(rejected)
    ]  # fmt: skip


def uses(pairs):
    return Counter(p.chosen[0].content for p in pairs), Counter(p.rejected[0].content for p in pairs)


def test_every_reply_comes_up_before_one_comes_up_again():
    for chosen, rejected, most in ((3, 10, 10), (10, 3, 10), (5, 5, 5), (4, 30, 20)):
        won, lost = uses(spread(prompt_of(chosen, rejected), most, 1).kept)
        assert len(won) == min(chosen, most) and len(lost) == min(rejected, most)
        assert max(won.values()) - min(won.values()) <= 1 and max(lost.values()) - min(lost.values()) <= 1


def test_each_prompt_has_its_own_bound_and_zero_is_none():
    pairs = [*prompt_of(4, 6), *prompt_of(2, 3, task=2)]
    result = spread(pairs, 20, 1)
    assert Counter(p.task_id for p in result.kept) == {1: 20, 2: 6}
    assert len(result.kept) + len(result.over) == len(pairs)
    assert spread(pairs, 0, 1) == (pairs, [])


def test_what_says_the_same_counts_once():
    twice = [*prompt_of(2, 2), *prompt_of(2, 2, start=5)]
    result = spread(twice, 4, 1)
    assert len(result.kept) == 8 and not result.over
    assert len({(p.chosen, p.rejected) for p in spread(twice, 3, 1).kept}) == 3


def test_the_seed_chooses_and_the_order_does_not():
    pairs = prompt_of(6, 6)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    kept = {p.pair_id for p in spread(pairs, 7, 1).kept}
    assert kept == {p.pair_id for p in spread(shuffled, 7, 1).kept}
    assert kept != {p.pair_id for p in spread(pairs, 7, 2).kept}
