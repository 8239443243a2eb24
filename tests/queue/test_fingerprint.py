"""Errors that are the same but for their particulars have the same name."""

import pytest

from gristmill.queue.fingerprint import fingerprint, normalise


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("page 17 of 230 is empty", "page <n> of <n> is empty"),
        ("took 1,234.5 s", "took <n> s"),
        ("GET https://a.example/x?y=1 answered 503", "GET <url> answered <n>"),
        ("no mailbox for jan.novak+a@mail.example.org", "no mailbox for <mail>"),
        ("document 3f2a91c0-7d1e-4f7b-9a53-0c2d4e5f6a7b is locked", "document <id> is locked"),
        ("due 2024-05-01T10:00:00Z", "due <time>"),
        ("due 2024-05-01 10:00:00.123+02:00 at last", "due <time> at last"),
        ("cannot open /srv/data/scan 7.pdf: no such file", "cannot open <path>: no such file"),
        (r"cannot open C:\scans\a.pdf", "cannot open <path>"),
        ("connect to 10.0.0.7:5432 refused", "connect to <address> refused"),
        ("connect to db.example.org:5432 refused", "connect to <address> refused"),
        ("connect to fe80::1 refused", "connect to <address> refused"),
        ("object at 0x7f9b9d37fad0", "object at <id>"),
        ("commit 9fceb02d0ae598e9 not found", "commit <id> not found"),
        ("worker-12 is gone", "worker-<n> is gone"),
        ("ValueError: bad\n  at line 3", "ValueError: bad"),
        ("   ", ""),
    ],
)
def test_the_particulars_are_taken_out(error: str, expected: str) -> None:
    assert normalise(error) == expected


def test_the_same_but_for_particulars_is_one_cluster_and_others_are_not() -> None:
    assert fingerprint("page 1 is empty") == fingerprint("page 99 is empty") != fingerprint("page 1 is torn")


def test_an_endless_error_is_cut() -> None:
    assert len(normalise("word " * 10_000)) <= 300
