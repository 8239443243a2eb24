"""The examples run, and show what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

EXAMPLES = Path(__file__).parents[1] / "examples"


def shown(url: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / words[0]), *words[1:]],
        env={**os.environ, "GRISTMILL_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hello(url: str) -> None:
    said = shown(url, "hello.py")
    assert all(f"Hello, {name}!" in said for name in ("world", "miller", "grain"))


def test_the_demonstration_ends_and_says_what_happened(url: str) -> None:
    said = shown(url, "demo.py", "--once")
    assert "101 tasks done" in said
    assert "8 dead letters" in said
    assert "The book of 60 pages was completed" in said
    assert re.search(r"The person was answered after [\d.]+ s, before \d+ that had waited longer", said)
    assert "4 × no password is known for the encrypted file <path>" in said
    assert "3 × mail from <mail> has no text" in said
    assert "it ran alone" in said
    assert re.search(r"task \d+, \d+ s after the start: \w+", said)
    with psycopg.connect(url) as connection:
        assert connection.execute(
            "SELECT count(*) FROM tasks WHERE status IN ('pending', 'processing')"
        ).fetchone() == (0,)
