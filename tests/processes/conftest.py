"""Here a closed pool ends its children: that is what is tested."""

from collections.abc import Iterator

import pytest

from nursery import NURSERY


@pytest.fixture(scope="module", autouse=True)
def ends_children() -> Iterator[None]:
    NURSERY.is_open = False
    yield
    NURSERY.is_open = True
