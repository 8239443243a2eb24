"""Here a closed pool ends its children: that is what is tested."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_nursery(ends_children: None) -> None:
    """For all tests of this room."""
