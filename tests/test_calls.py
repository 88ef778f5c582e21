"""Calls are read as each backend of clemcore records them."""

import pytest
from results_folder import api_call, chat, local_call

from pairgen.clem.calls import answer_of, call_of, sent_messages


def answer(response, prompt=None):
    return answer_of(call_of({"manipulated_prompt_obj": prompt, "raw_response_obj": response}))


def test_a_local_output_that_ends_in_a_special_token_was_ended_by_the_model():
    assert answer_of(call_of(local_call(chat("a"), "GO: up")))[:2] == ("GO: up", "stop")
    assert answer_of(call_of(local_call(chat("a"), "GO: up", end="<|eot_id|><|pad|>")))[:2] == ("GO: up", "stop")


def test_a_local_output_without_one_was_cut():
    assert answer_of(call_of(local_call(chat("a"), "GO: up and", end="")))[:2] == ("GO: up and", "length")


def test_an_end_token_of_an_unknown_kind_is_known_by_having_been_cut_off():
    assert answer_of(call_of(local_call(chat("a"), "GO: up", end="[EOS]")))[:2] == ("GO: up", "stop")


def test_a_local_output_that_does_not_begin_with_the_prompt_says_nothing():
    entry = local_call(chat("a"), "b")
    entry["raw_response_obj"]["response"] = "b"
    assert answer_of(call_of(entry))[:2] == (None, "unknown")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2}}, ("stop", 5, 2, -1)),
        ({"stop_reason": "max_tokens"}, ("length", -1, -1, -1)),
        (
            {
                "candidates": [{"finish_reason": "STOP", "content": {"parts": []}}],
                "usage_metadata": {
                    "prompt_token_count": 9,
                    "candidates_token_count": 3,
                    "cached_content_token_count": 1,
                },
            },
            ("stop", 9, 3, 1),
        ),
        (
            {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 4.0, "output_tokens": 1.0}}},
            ("stop", 4, 1, -1),
        ),
        ({"choices": [{"finish_reason": "content_filter"}]}, ("content_filter", -1, -1, -1)),
        (
            {"response": {"choices": [{"text": "x", "finish_reason": "length"}], "usage": {"prompt_tokens": 3}}},
            ("length", 3, -1, -1),
        ),
        ({"status": "completed"}, ("stop", -1, -1, -1)),
        ({}, ("unknown", -1, -1, -1)),
        ({"choices": [], "usage": None}, ("unknown", -1, -1, -1)),
    ],
    ids=["anthropic", "anthropic cut", "google", "cohere", "filtered", "llama.cpp", "azure", "nothing", "empty"],
)
def test_finish_reason_and_tokens_of_each_backend(response, expected):
    assert answer(response)[1:] == expected


def test_an_api_answer_keeps_the_text_before_it_was_stripped():
    assert answer_of(call_of(api_call(chat("a"), "GO: up"))) == ("GO: up\n", "stop", 11, 7, 4)


def test_message_lists_of_each_backend():
    google = [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": "b"}]
    assert sent_messages(google) == sent_messages(parts) == sent_messages(chat("a", "b"))


def test_what_is_no_message_list_of_text_is_none():
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    for other in (None, [], {"inputs": "x"}, {"role": "user", "content": "x"}, image, ["x"]):
        assert sent_messages(other) is None


def test_an_entry_that_is_no_call_is_none():
    assert call_of({"timestamp": "t"}) is None
    assert call_of({"round": 0, "call": None}) is None
