"""Options of sources hold no secrets, and show none."""

import pytest

from gristmill.errors import Refused
from gristmill.sources import check_options, find_kind, show_options


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("caldav", {"url": "https://anna:hunter2@dav.example.org/c/", "user": "anna", "password": "env:X"}),
        ("caldav", {"url": "https://dav.example.org/c/?key=hunter2", "user": "anna", "password": "env:X"}),
        ("git", {"url": "https://git.example.org/r.git?private_token=hunter2"}),
        ("git", {"url": "https://anna:hunter2@git.example.org/r.git"}),
        ("git", {"url": "ssh://git:hunter2@git.example.org/r.git"}),
        ("git", {"url": "https://git.example.org/r.git#hunter2"}),
        ("jira", {"url": "https://jira.example.org/?os_password=hunter2"}),
    ],
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_told(kind: str, options: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        check_options(find_kind(kind), options)
    assert "it holds" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"url": "https://anna:hunter2@dav.example.org/c?key=hunter2#hunter2"}, {"url": "https://dav.example.org/c"}),
        ({"url": "ssh://git:hunter2@git.example.org:22/r.git"}, {"url": "ssh://git@git.example.org:22/r.git"}),
        ({"url": "git@git.example.org:a/r.git"}, {"url": "git@git.example.org:a/r.git"}),
        ({"token_command": "curl -d client_secret=hunter2 https://a.org"}, {"token_command": "curl …"}),
        ({"token_command": "print-token", "user": "anna"}, {"token_command": "print-token", "user": "anna"}),
        ({"path": "/srv/letters", "idle": False}, {"path": "/srv/letters", "idle": False}),
    ],
)
def test_what_is_shown_of_options_holds_no_secret(options: dict[str, object], shown: dict[str, object]) -> None:
    assert show_options(options) == shown
