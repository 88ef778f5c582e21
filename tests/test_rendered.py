"""A rendered template agrees with its messages, and with nothing else."""

import pytest
from results_folder import chat, llama

from pairgen.clem.rendered import agrees
from pairgen.records import Message

CHAT = chat("Play a game.\n\n\nuser: first", "GO: north", " next? ")


def messages(entries):
    return tuple(Message(m["role"], m["content"]) for m in entries)


def chatml(entries, system="You are a helpful assistant."):
    turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in entries)
    return f"<|im_start|>system\n{system}<|im_end|>\n{turns}<|im_start|>assistant\n<think>\n\n</think>\n\n"


def gemma(entries):
    names = {"user": "user", "assistant": "model"}
    turns = "".join(f"<start_of_turn>{names[m['role']]}\n{m['content'].strip()}<end_of_turn>\n" for m in entries)
    return f"<bos>{turns}<start_of_turn>model\n"


def mistral(entries):
    turns = [f"[INST] {m['content']} [/INST]" if m["role"] == "user" else f" {m['content']}</s>" for m in entries]
    return "<s>" + "".join(turns)


def deepseek(entries):
    marks = {"user": "<｜User｜>", "assistant": "<｜Assistant｜>"}
    ends = {"user": "", "assistant": "<｜end▁of▁sentence｜>"}
    turns = "".join(marks[m["role"]] + m["content"] + ends[m["role"]] for m in entries)
    return f"<｜begin▁of▁sentence｜>{turns}<｜Assistant｜><think>\n"


TEMPLATES = [llama, chatml, gemma, mistral, deepseek]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_of_the_same_messages_agrees(template):
    assert agrees(messages(CHAT), template(CHAT)) is True


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "other",
    [
        CHAT[:1],
        [*CHAT, *CHAT[1:]],
        [*CHAT[:2], {"role": "user", "content": "next?!"}],
        [{"role": "user", "content": "Play a game."}, *CHAT[1:]],
        [{"role": "user", "content": "One more game."}, {"role": "assistant", "content": "ok"}, *CHAT],
        [*CHAT[:2], {"role": "user", "content": "next? and then"}],
    ],
    ids=["shorter", "longer", "other end", "part of the first", "more before", "more behind"],
)
def test_a_template_of_other_messages_does_not(template, other):
    assert agrees(messages(CHAT), template(other)) is False
    assert agrees(messages(other), template(CHAT)) is False


@pytest.mark.parametrize("template", [llama, chatml, gemma, deepseek])
def test_roles_are_compared_where_the_template_names_them(template):
    turned = [{**m, "role": "assistant" if m["role"] == "user" else "user"} for m in CHAT]
    assert agrees(messages(CHAT), template(turned)) is False


def test_a_first_turn_that_is_missing_does_not_pass_for_the_templates_system_text():
    assert agrees(messages(CHAT[2:]), llama(CHAT)) is False


def test_a_message_may_begin_like_a_mark():
    entries = chat("<s> is a token\nuser", "user says <|x|>", "[INST]")
    assert agrees(messages(entries), chatml(entries)) is True


def test_what_decoding_takes_away_is_no_difference():
    entries = chat("ME: . Do n't , do you ?")
    decoded = llama(chat("ME:. Don't, do you?"))
    assert agrees(messages(entries), decoded) is True


def test_a_text_without_marks_cannot_be_judged():
    assert agrees(messages(CHAT), "Play a game. GO: north next?") is None
