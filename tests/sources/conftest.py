"""Servers for all tests of a process that need them."""

from collections.abc import Iterator

import pytest
from calendar_server import Radicale, a_radicale
from dovecot import Dovecot, a_dovecot


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Dovecot]:
    with a_dovecot() as server:
        yield server


@pytest.fixture(scope="session")
def radicale() -> Iterator[Radicale]:
    with a_radicale() as server:
        yield server
