"""A rejected side that the referee accepts is made again a few times, all open ones in one round."""

import dataclasses
from collections import Counter

from factories import STRATEGIES, make_episodes, make_pair

from pairgen.records import Message
from pairgen.strategy import Corruption, Strategy
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.redraw import MOST_ATTEMPTS, redraw
from pipelines.verdicts import Policy, Verdict

STRICT = Policy(frozenset({"longer"}))


def reworded(pair, text):
    return dataclasses.replace(pair, rejected=(Message("assistant", text),), pair_id=f"{pair.pair_id} {text}")


class Referee:
    """Accepts every rejected side that is not bad; remembers what it was asked in each round."""

    def __init__(self, chosen="accepted"):
        self.rounds, self.chosen = [], chosen

    def __call__(self, pairs):
        self.rounds.append([p.rejected[0].content for p in pairs])
        said = {(p.move_id, None): Verdict(self.chosen, "") for p in pairs}
        for pair in pairs:
            text = pair.rejected[0].content
            said[pair.move_id, text] = Verdict("violation" if "bad" in text else "accepted", "")
        return said


def test_a_pair_is_made_again_until_the_referee_rejects_it():
    pairs, referee = [make_pair(1), make_pair(2), make_pair(3)], Referee()
    made = redraw(pairs, referee, lambda p, n: [reworded(p, f"bad {n}" if p.task_id == n else f"fine {n}")], STRICT)
    assert [p.rejected[0].content for p in made.pairs] == ["bad 1", "bad 2", "bad 3"]
    assert made.attempts == {}
    assert [len(asked) for asked in referee.rounds] == [3, 3, 2, 1]


def test_a_pair_that_cannot_be_helped_stays_as_it_was_with_its_attempts():
    pair, referee = make_pair(1), Referee()
    made = redraw([pair], referee, lambda p, n: [reworded(p, f"fine {n}")], STRICT)
    assert (made.pairs, made.attempts) == ([pair], {pair.pair_id: MOST_ATTEMPTS})


def test_what_was_tried_is_not_asked_again():
    pair, referee = make_pair(1), Referee()
    made = redraw([pair], referee, lambda p, n: [p, reworded(p, "fine"), reworded(p, "fine")], STRICT)
    assert [len(asked) for asked in referee.rounds] == [1, 1]
    assert made.attempts == {pair.pair_id: 2}


def test_only_what_needs_a_violation_and_may_be_kept_is_made_again():
    pair, never = make_pair(1), lambda p, n: [][n]
    for policy, referee in ((Policy(frozenset()), Referee()), (STRICT, Referee(chosen="violation"))):
        assert redraw([pair], referee, never, policy).pairs == [pair]
    assert redraw([reworded(pair, "bad")], Referee(), never, STRICT).attempts == {}
    assert redraw([pair], lambda pairs: {}, never, STRICT).attempts == {}


def test_the_funnel_counts_a_redrawn_pair_once():
    drawn = Counter()

    def sometimes(material, chance, options):
        drawn[material.move.reply] += 1
        return Corruption(
            material.move.reply + chance.choice((" bad", " fine", " good", " well", " so", " ah")), "tail"
        )

    strategies = {**STRATEGIES, "sometimes": Strategy("sometimes", "", sometimes, requires_violation=True)}
    config = CorruptConfig(strategy=("sometimes",), per_player=0)
    choices = choose(config.strategy, "", strategies)

    def made():
        return build(make_episodes(), config, choices, strategies, NO_EVAL_SPLIT, referee=Referee())

    result = made()
    verify = next(s for s in result.funnel if s.stage == "verify")
    kept, drops = [*result.train, *result.test], [d for d in result.drops if d.stage == "verify"]
    assert (verify.entered, verify.kept + len(drops)) == (120, 120)
    assert verify.kept > 40 and drops
    assert {p.rejected_verdict for p in kept} == {"violation"} and all("bad" in p.rejected[0].content for p in kept)
    assert {d.reason for d in drops} == {"rejected_accepted"}
    assert "accepted, 4 attempts" in {d.detail for d in drops}
    assert max(drawn.values()) == MOST_ATTEMPTS
    assert (result.train, result.test, result.drops) == made()[:3]
