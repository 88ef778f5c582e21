"""The counts, and the sentence for a person who got nothing."""

from factories import make_pair

from pipelines.funnel import REASONS, StageCount, count_reasons, count_stage, drop_pair, why_empty


def stage(name, entered, **reasons):
    drops = [drop_pair(make_pair(), name, reason) for reason, count in reasons.items() for _ in range(count)]
    return count_stage(name, "moves", entered, entered - len(drops), drops)


def test_reasons_are_counted_most_frequent_first():
    counted = stage("harvest", 10, empty=1, violation=3, unfinished=3)
    assert [(r.reason, r.count) for r in counted.dropped] == [("unfinished", 3), ("violation", 3), ("empty", 1)]
    assert (counted.entered, counted.kept) == (10, 3)
    assert count_reasons([counted, stage("dedup", 3, empty=3)]) == {"empty": 4, "unfinished": 3, "violation": 3}


def test_an_empty_set_is_explained_by_the_stage_that_let_nothing_through():
    text = why_empty([stage("harvest", 10, violation=1), stage("decontaminate", 9, eval_key=8, eval_content=1)])
    assert "9 moves at the stage decontaminate, 8 were dropped as eval_key" in text
    assert "1 for other reasons" in text and "--no-eval-split" in text
    assert "another --strategy" in why_empty([stage("harvest", 1), stage("corrupt", 1, too_short=1)])
    assert "no move of a model" in why_empty([StageCount("harvest", "moves", 0, 0, ())])


def test_every_reason_says_what_it_means_and_what_to_do():
    assert all(reason.meaning and reason.mend for reason in REASONS.values())
