"""A mail server for all tests of a process that need one."""

from collections.abc import Iterator

import pytest
from dovecot import Dovecot, a_dovecot


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Dovecot]:
    with a_dovecot() as server:
        yield server
