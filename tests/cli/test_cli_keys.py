"""`gristmill key` and `gristmill serve`: who may come in, and where to."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from desk import PATIENCE, within


def test_a_key_is_made_listed_and_revoked(cli) -> None:
    said = cli("key", "add", "anna", "--role", "manager", "--client", "acme")
    assert said.code == 0
    assert re.match(r"gm_[\w-]{43}\n", said.out)
    assert "anna is manager of acme." in said.out
    cli("key", "add", "boss", "--role", "admin")
    listed = cli("key", "ls", "--json").json
    assert [(key["name"], key["role"], key["bound_to"]) for key in listed] == [
        ("anna", "manager", "acme"),
        ("boss", "admin", "all clients"),
    ]
    assert "secret" not in listed[0]
    assert cli("key", "revoke", "anna").out == "The key anna opens nothing any more.\n"
    assert [key["name"] for key in cli("key", "ls", "--json").json] == ["boss"]
    assert [key["name"] for key in cli("key", "ls", "--all", "--json").json] == ["anna", "boss"]


def test_the_secret_is_in_the_json_once(cli) -> None:
    new = cli("key", "add", "anna", "--json").json
    assert new["secret"].startswith("gm_")
    assert new["bound_to"] == "all clients"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("add", ""), 1, "A key needs a name"),
        (("add", "a", "--project", "one"), 2, "needs its client"),
        (("add", "a", "--role", "king"), 2, "--role"),
        (("revoke", "nobody"), 1, "There is no key “nobody”: gristmill key ls lists them."),
        (("revoke", "99"), 1, "There is no key 99."),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(cli, words: tuple[str, ...], code: int, sentence: str) -> None:
    said = cli("key", *words)
    assert said.code == code
    assert sentence in said.err


def test_a_name_is_given_once(cli) -> None:
    cli("key", "add", "anna")
    said = cli("key", "add", "anna")
    assert (said.code, "There is a key named “anna” already" in said.err) == (1, True)


def test_commands_are_in_the_audit_log(cli, url: str) -> None:
    cli("key", "add", "anna")
    cli("key", "revoke", "anna")
    rows = within(url, lambda tx: tx.all("SELECT caller, action, subject, address FROM audit ORDER BY id"))
    assert [tuple(row) for row in rows] == [
        ("operator", "add key", "key anna", "this machine"),
        ("operator", "revoke key", "key anna", "this machine"),
    ]


def test_serve_prints_a_link_that_signs_in_and_ends_in_good_order(url: str) -> None:
    environment = {**os.environ, "GRISTMILL_DATABASE_URL": url}
    command = [sys.executable, "-m", "gristmill", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            line = next(line for line in process.stderr if "http://" in line)
            link = re.search(r"http://\S+", line)
            assert link
            answer = httpx.get(link[0])
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_serve_for_others_needs_a_key(cli) -> None:
    said = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert said.code == 1
    assert "there is no key yet: make one with gristmill key add NAME" in said.err


def test_a_link_of_its_own_can_be_printed(cli) -> None:
    assert re.match(r"http://127\.0\.0\.1:6455/\?token=[\w-]{43}\n", cli("key", "link").out)
