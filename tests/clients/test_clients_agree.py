"""Clients of both APIs get from the router what they get from the backend itself.

`make test-clients` runs this in an environment of its own (requirements/clients.lock, .venv/clients), as
`.venv/clients/bin/python -m pytest -c tests/clients/pytest.ini tests/clients`; the ordinary run does not collect it.
The fake backend and the routers are started with .venv/bin/python, or with GRISTMILL_PYTHON. The newest openai is tried
by tests/router, because some of these libraries ask for an older one.
"""

import pytest
from acts import CLIENTS

ACTS = ("chat", "stream", "tool", "structured", "embedding")
WITHOUT_EMBEDDINGS = ("instructor", "pydantic-ai", "pydantic-ai-responses")  # they have none of their own
CASES = [(name, act) for name in CLIENTS for act in ACTS if act != "embedding" or name not in WITHOUT_EMBEDDINGS]


@pytest.mark.parametrize("backend", ["ollama", "openai"])
@pytest.mark.parametrize(("client", "act"), CASES)
def test_a_client_gets_the_same_through_the_router(urls: dict[str, str], client: str, act: str, backend: str) -> None:
    direct = getattr(CLIENTS[client](urls["direct"]), act)()
    routed = getattr(CLIENTS[client](urls[backend]), act)()
    assert direct, "the backend itself gives this client nothing"
    assert routed == direct
