"""Actions say what they did, with scripts and without, and lead nowhere else."""

import json

import pytest
from fastapi import Request

from gristmill.serving import answer_action, stay_here


def ask(*, scripted: bool) -> Request:
    headers = [(b"hx-request", b"true")] if scripted else []
    return Request({"type": "http", "method": "POST", "path": "/x", "query_string": b"", "headers": headers})


def test_a_script_is_told_in_a_header_whatever_the_letters() -> None:
    answer = answer_action(ask(scripted=True), "Paused “größer” 🦊.", back="/queues", undo="/undo")
    assert answer.status_code == 204
    assert json.loads(answer.headers["hx-trigger"]) == {"said": {"text": "Paused “größer” 🦊.", "undo": "/undo"}}


def test_a_plain_form_is_led_back_and_the_next_page_says_it() -> None:
    answer = answer_action(ask(scripted=False), "Paused.", back="/queues")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    assert "gristmill_said=Paused." in answer.headers["set-cookie"]


@pytest.mark.parametrize("address", ["https://evil.example/", "//evil.example", "/\\evil.example", "queues", "", None])
def test_a_form_cannot_lead_to_another_site(address: str | None) -> None:
    assert stay_here(address, "/") == "/"


def test_a_form_may_lead_to_any_page_here() -> None:
    assert stay_here("/tasks?queue=a&after=x", "/") == "/tasks?queue=a&after=x"
