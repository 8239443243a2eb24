"""Streams that pass as they are, however the network cuts them into pieces."""

import time

import pytest

from gristmill.router.breaker import BackendFailure
from gristmill.router.replies import CollectedEvents, NdjsonRelay, Sink, SseRelay
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import V1_CHAT, ModelRequest

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


ASKED = ModelRequest(V1_CHAT, {}, "m", False, False, "m:latest", False)


@pytest.mark.parametrize("into", [NdjsonRelay(), SseRelay(True), CollectedEvents(ASKED, 1)])
def test_a_very_long_line_is_put_together_once_and_not_with_every_piece(into: Sink) -> None:
    word = b"a" * 30_000_000
    if isinstance(into, NdjsonRelay):
        whole = b'{"message":{"content":"%b"},"done":true}\n' % word
    else:
        whole = SAYS.replace(b'"a"', b'"%b"' % word) + b"\n\n" + ENDS + b"\n\n" + DONE + b"\n\n"
    began = time.process_time()
    heard = [into.feed(whole[at : at + 8192]) for at in range(0, len(whole), 8192)]
    last = into.close()
    # 3,700 pieces: copying what came before with each of them would move 55 GB
    assert time.process_time() - began < 3
    assert len(b"".join(heard) + last) > len(word)


@pytest.mark.parametrize("event", [b"null", b"[]", b"3"])
def test_an_event_that_is_no_object_is_the_backends_failure(event: bytes) -> None:
    with pytest.raises(AttemptFailed) as failed:
        SseRelay(usage=True).feed(b"data: " + event + b"\n\n")
    assert failed.value.kind is BackendFailure.BROKEN
