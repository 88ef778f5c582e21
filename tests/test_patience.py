"""Waits as it is told, longer each time where it is told nothing, and never longer in all than was allowed."""

import email.utils
import time

import httpx
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from pipelines.patience import Patience, asked_wait, may_pass, status_of


def refusal(status, **headers):
    """What huggingface_hub 1.x raises, wrapped as an upload wraps it."""
    response = httpx.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()})
    error = RuntimeError("Error while uploading")
    error.__cause__ = httpx.HTTPStatusError("no", request=httpx.Request("GET", "http://x"), response=response)
    return error


def of_requests(status):
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError("no", response=response)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (refusal(429), True),
        (refusal(503), True),
        (refusal(403), False),
        (refusal(412), False),
        (of_requests(500), True),
        (of_requests(404), False),
        (requests.ConnectionError(), True),
        (httpx.ReadError("cut"), True),
        (ConnectionError("Network error: HTTP status client error (404 Not Found), domain: http://x"), False),
        (ConnectionError("Network error: HTTP status server error (503 Busy), domain: http://x"), True),
        (ValueError("no"), False),
    ],
)
def test_only_what_may_pass_is_asked_again(error, passes):
    asked = []

    def work():
        asked.append(1)
        raise error

    with pytest.raises(type(error)):
        Patience(1, str, lambda s: None).call("it", work)
    assert may_pass(error) is passes and len(asked) == 1 + passes


def test_the_wait_is_the_one_that_the_server_names():
    assert asked_wait(refusal(429, Retry_After="7")) == 7
    assert asked_wait(refusal(429, RateLimit='"api";r=0;t=55')) == 56
    assert asked_wait(refusal(429, RateLimit='"api";r=9;t=55')) is None
    assert 55 < asked_wait(refusal(503, Retry_After=email.utils.formatdate(time.time() + 60, usegmt=True))) <= 60
    assert asked_wait(refusal(503)) is None and status_of(refusal(503)) == 503


def test_it_goes_through_in_the_end_and_each_wait_is_told():
    answers, told, slept = [refusal(429, Retry_After="3"), refusal(503), refusal(503)], [], []

    def work():
        if answers:
            raise answers.pop(0)
        return "done"

    assert Patience(60, told.append, slept.append).call("the commit", work) == "done"
    assert slept == [3, 2, 4]
    assert told[0] == "the commit: too many requests (429); trying again in 3 s (57 s left to wait)"


@given(st.floats(0, 500), st.integers(0, 100))
def test_all_waits_together_stay_in_the_bound(seconds, named):
    slept = []

    def work():
        raise refusal(429, **({"Retry_After": str(named)} if named > 1 else {}))

    with pytest.raises(RuntimeError):
        Patience(seconds, str, slept.append).call("it", work)
    assert sum(slept) <= seconds
