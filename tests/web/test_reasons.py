"""The reason why a task waits has a link in each noun, and names what this caller can do about it."""

from datetime import timedelta

import pytest

from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue import Why
from gristmill.scopes import Scope
from gristmill.serving import Caller, Role
from gristmill.web.console.reasons import find_levers, link_reason
from gristmill.web.limits import read_limit, write_gap

LIMITED = "rate-limited until 2026-11-17 10:42:05+00:00 (10 starts within 60s in extract), behind 19 others"


def explain(state: str, sentence: str, **facts: object) -> Why:
    return Why(TaskId(7), state, sentence, facts)


def call(role: Role = "admin", bound_to: Scope | None = None) -> Caller:
    return Caller("somebody", role, bound_to, "test")


def test_a_limit_a_time_and_the_line_are_links() -> None:
    drawn = link_reason(explain("rate-limited", LIMITED, queue="extract"), operator=True)
    assert '<time datetime="2026-11-17T10:42:05+00:00"' in drawn
    assert 'href="/queues/extract/settings" data-dialog="Limits of extract">10 starts within 60s</a>' in drawn
    assert 'in <a href="/queues/extract">extract</a>' in drawn
    assert 'behind <a href="/tasks?queue=extract&amp;status=pending">19 others</a>' in drawn


def test_other_tasks_are_links() -> None:
    drawn = link_reason(explain("blocked", "blocked by task 12, which is pending", after=12), operator=True)
    assert drawn == 'blocked by <a href="/tasks/12">task 12</a>, which is pending'
    failing = link_reason(explain("dead", "a group, failed: 2 failed (3, 4, …)"), operator=False)
    assert '(<a href="/tasks/3">3</a>, <a href="/tasks/4">4</a>, …)' in failing


def test_an_error_of_a_task_cannot_become_markup() -> None:
    drawn = link_reason(explain("dead", "dead: <script>alert(1)</script>", queue="x"), operator=True)
    assert "<script>" not in drawn


def test_a_client_is_led_to_no_page_of_the_operator() -> None:
    drawn = link_reason(explain("rate-limited", LIMITED, queue="extract"), operator=False)
    assert "/queues/" not in drawn


@pytest.mark.parametrize(
    ("state", "labels"),
    [
        ("paused", ["Resume the queue", "Move it first", "Somebody waits for it", "Cancel"]),
        ("rate-limited", ["Raise the rate", "Move it first", "Somebody waits for it", "Cancel"]),
        ("running", ["Cancel"]),
        ("dead", ["Retry"]),
        ("done", ["Run it again"]),
    ],
)
def test_the_operator_gets_the_lever_that_fits(state: str, labels: list[str]) -> None:
    levers = find_levers(explain(state, "because", queue="extract", workers=1), call())
    assert [one.label for one in levers] == labels


def test_a_client_changes_its_tasks_and_not_the_queue_and_a_viewer_changes_nothing() -> None:
    paused = explain("paused", "because", queue="extract", workers=1)
    assert "Resume the queue" not in [one.label for one in find_levers(paused, call(bound_to=Scope("acme")))]
    assert find_levers(paused, call("viewer")) == []


def test_a_queue_without_a_worker_names_the_command() -> None:
    levers = find_levers(explain("no worker", "because", queue="extract"), call("viewer"))
    assert [one.target for one in levers] == ["gristmill worker --queues extract"]


def test_the_limits_of_a_limiter_are_read_as_they_are_written() -> None:
    limit = read_limit({"concurrency": "2", "rate": "5/60s", "gap": "3s-5s"})
    assert limit.concurrency == 2
    assert limit.rate is not None
    assert limit.rate.period == timedelta(minutes=1)
    assert write_gap(limit) == "3s-5s"
    assert write_gap(read_limit({"concurrency": "", "rate": "", "gap": ""})) == ""


@pytest.mark.parametrize("given", [{"concurrency": "many"}, {"rate": "often"}, {"gap": "5s-3s"}, {"gap": "soon"}])
def test_a_wrong_limit_of_a_limiter_is_one_sentence(given: dict[str, str]) -> None:
    with pytest.raises(Refused, match=r"\.$"):
        read_limit(given)
