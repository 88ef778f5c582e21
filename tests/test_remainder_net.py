"""The third net catches what asks the same as an evaluation instance, under any number, and nothing else."""

import pytest
from factories import make_episode, make_move, make_pair
from test_template import RULES, WORDS

from pairgen.records import InstanceKey, Message
from pipelines.first_prompts import EvalPrompt, eval_prompts, first_of, templates_of, with_asked
from pipelines.remainder_net import net_remainders
from pipelines.slim import frame_of, slim, without
from pipelines.split import shared, sides

LONG = [f"thing{i}" for i in range(60)]


def asking(task, word, game="taboo", role="Giver", rules=RULES, **fields):
    prompt = (Message("user", rules.format(word, word[:2], word[-2:])),)
    return make_pair(task, game=game, role=role, prompt=prompt, instance_hash="", **fields)


def evaluation(pairs, shift=1000):
    return [EvalPrompt(p.instance._replace(task_id=p.task_id + shift), p.role, first_of(p.prompt)) for p in pairs]


def netted(pairs, prompts, **options):
    frame = frame_of(pairs)
    rows = slim(frame)
    return rows, net_remainders(rows, frame, prompts, templates_of(rows, frame, prompts), **options)


def test_the_same_word_under_another_number_is_caught_and_its_evaluation_instance_named():
    pairs = [asking(i, word) for i, word in enumerate(WORDS)]
    rows, found = netted(pairs, evaluation(pairs[3:5]))
    assert [(d["reason"], d["keeper"], d["score"]) for d in found.decided.to_dicts()] == [
        ("eval_prompt", "taboo/high_en/1003", 1.0),
        ("eval_prompt", "taboo/high_en/1004", 1.0),
    ]
    assert without(rows, found.decided).height == len(WORDS) - 2 and found.blind == ()


def test_other_instances_of_the_same_game_are_not_caught():
    pairs = [asking(i, word) for i, word in enumerate(WORDS)]
    assert not netted(pairs[:6], evaluation(pairs[6:]))[1].decided.height


def test_nearly_the_same_task_and_the_same_words_in_another_order_are_caught():
    asked = [" ".join(LONG), *(" ".join(f"other{i}x{n}" for n in range(60)) for i in range(8))]
    pairs = [asking(i, text) for i, text in enumerate(asked)]
    near = " ".join([*LONG, "more"])
    shuffled = " ".join(reversed(LONG))
    for text, least in ((near, 0.9), (shuffled, 1.0)):
        prompts = [EvalPrompt(InstanceKey("taboo", "high_en", 99), "Giver", RULES.format(text, "th", "59"))]
        found = netted(pairs, prompts)[1].decided
        assert found.select("row", "reason").rows() == [(0, "eval_prompt_near")] and found["score"][0] >= least
        assert not netted(pairs, prompts, near=0)[1].decided.height


def test_a_prompt_that_is_all_template_is_told_and_not_caught():
    pairs = [make_pair(i, prompt=(Message("user", "Guess the word."),)) for i in range(8)]
    found = netted(pairs, evaluation(pairs[:4]))[1]
    assert not found.decided.height
    assert [tuple(b) for b in found.blind] == [("taboo", "Giver", "all_template", 8)]


def test_a_game_without_evaluation_prompts_is_told():
    found = netted([asking(1, "apple")], [])[1]
    assert [b.why for b in found.blind] == ["no_evaluation_prompt"]


def test_where_the_template_is_not_known_equal_prompts_are_caught():
    pairs = [asking(1, "apple"), asking(2, "river")]
    assert netted(pairs, evaluation(pairs[:1]))[1].decided["row"].to_list() == [0]


@pytest.mark.parametrize("field", ["game", "role"])
def test_games_and_roles_are_not_compared_with_each_other(field):
    pairs = [asking(i, word) for i, word in enumerate(WORDS)]
    foreign = [asking(i, word, **{field: "Other"}) for i, word in enumerate(WORDS)]
    assert not netted(pairs, evaluation(foreign))[1].decided.height


def test_evaluation_prompts_come_from_the_models_of_evaluation_episodes():
    played = make_episode(3, moves=(make_move(0), make_move(1)))
    found = eval_prompts([played, make_episode(4)], lambda e: e.task_id == 3)
    assert {p.key for p in found} == {played.key.instance}
    assert {p.text for p in found} == {first_of(m.prompt) for m in played.moves}


def test_what_asks_the_same_falls_on_one_side_though_numbers_and_contents_differ():
    pairs = [asking(i, WORDS[i // 2], pair_id=f"p{i:02}") for i in range(24)]
    frame = frame_of(pairs)
    rows = with_asked(slim(frame), frame, templates_of(slim(frame), frame))
    assert rows["asked"].n_unique() == 12
    assert not shared(sides(rows, 0.3, 42, "asked"), "asked").height
    assert shared(sides(rows, 0.3, 42), "asked").height


def test_prompts_that_are_all_template_may_be_on_both_sides():
    pairs = [make_pair(i, prompt=(Message("user", "Guess the word."),)) for i in range(10)]
    frame = frame_of(pairs)
    rows = with_asked(slim(frame), frame, templates_of(slim(frame), frame))
    assert rows["asked"].null_count() == 10
    divided = sides(rows, 0.3, 42, "asked")
    assert set(divided["split"]) == {"train", "test"} and not shared(divided, "asked").height
    assert shared(divided).select("train", "test").row(0) == (7, 3)


def test_a_role_may_be_written_otherwise_in_another_version_of_the_game():
    pairs = [asking(i, word, role="WordGiver") for i, word in enumerate(WORDS)]
    prompts = [p._replace(role="Word Giver") for p in evaluation(pairs[:2])]
    assert netted(pairs, prompts)[1].decided["row"].to_list() == [0, 1]
