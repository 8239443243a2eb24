"""The account at the provider of embeddings: how much credit is left, where the provider tells."""

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from gristmill.errors import GristmillError
from gristmill.models.http import Http, Json, hide_credentials, make_bearer_header, read_response

if TYPE_CHECKING:
    from gristmill.settings import EmbeddingSettings

PATIENCE = timedelta(seconds=10)  # a number that is only shown is not worth a longer wait


async def ask_balance(settings: "EmbeddingSettings") -> float | None:
    """The credit that is left, as OpenRouter tells it; None if this provider tells nothing."""
    if settings.kind != "openai" or settings.key is None:
        return None
    http = Http(make_bearer_header(settings.key), min(settings.timeout, PATIENCE))
    url = settings.url.rstrip("/") + "/v1/credits"
    try:
        answer = await http.get(url, whom=f"The embedding endpoint {hide_credentials(url)}")
        return _read_balance(read_response(answer, whom="The embedding endpoint", key=settings.key))
    except GristmillError:  # most providers have no such address
        return None
    finally:
        await http.close()


def _read_balance(answer: Json) -> float | None:
    data = answer.get("data")
    if not isinstance(data, dict):
        return None
    total, used = cast("Json", data).get("total_credits"), cast("Json", data).get("total_usage")
    if not isinstance(total, int | float) or not isinstance(used, int | float):
        return None
    return float(total - used)
