"""Streams that pass as they are, however the network cuts them into pieces."""

import pytest

from gristmill.router.breaker import Failure
from gristmill.router.replies import NdjsonRelay, SseRelay
from gristmill.router.upstream import AttemptFailed

SAYS = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}'
ENDS = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}'
DONE = b"data: [DONE]"


def test_a_tool_that_is_told_done_false_does_not_hide_the_end() -> None:
    calls = b'{"message":{"tool_calls":[{"function":{"name":"note","arguments":{"done":false}}}]},"done":false}\n'
    ends = b'{"message":{"content":""},"done":true,"prompt_eval_count":3,"eval_count":5}\n'
    relay = NdjsonRelay()
    assert relay.feed(calls + ends) + relay.close() == calls + ends
    assert (relay.tally().prompt, relay.tally().completion) == (3, 5)


@pytest.mark.parametrize("gap", [b"\n\n", b"\r\n\r\n"])
def test_events_are_the_same_wherever_they_are_cut(gap: bytes) -> None:
    whole = SAYS + gap + SAYS + gap + ENDS + gap + DONE + gap
    for cut in range(len(whole)):
        relay = SseRelay(usage=True)
        parts = [relay.feed(whole[:cut]), relay.feed(whole[cut:]), relay.close()]
        heard = b"".join(parts).replace(b"\r", b"")
        assert heard.split(b"\n\n") == [SAYS, SAYS, ENDS, DONE, b""]
        assert all(not part or part.endswith(gap[-1:] * 2) or part.endswith(gap) for part in parts)


def test_a_last_event_without_its_blank_line_is_passed_on() -> None:
    relay = SseRelay(usage=True)
    assert relay.feed(SAYS + b"\n\n" + ENDS + b"\n\n" + DONE) + relay.close() == b"\n\n".join([SAYS, ENDS, DONE, b""])


@pytest.mark.parametrize("event", [b"null", b"[]", b"3"])
def test_an_event_that_is_no_object_is_the_backends_failure(event: bytes) -> None:
    with pytest.raises(AttemptFailed) as failed:
        SseRelay(usage=True).feed(b"data: " + event + b"\n\n")
    assert failed.value.kind is Failure.BROKEN
