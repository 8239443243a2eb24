"""Tells programs outside that their task is done: at a checked address, signed, with the same key at every attempt."""

import hashlib
import hmac
from typing import Any

import orjson

from gristmill.db import Database
from gristmill.errors import Unknown
from gristmill.queue import Done, Skip, current, get_task
from gristmill.settings import WebSettings
from gristmill.sources import Fetcher
from gristmill.tasks import SendCallback

SIGNATURE = "X-Gristmill-Signature"
GONE = Skip("the task that it tells of is gone")


async def send_callback(letter: SendCallback, *, db: Database, fetcher: Fetcher, settings: WebSettings) -> Done | Skip:
    """Retried alone; every attempt carries the same Idempotency-Key."""
    try:
        async with db.transaction() as tx:
            task = await get_task(tx, letter.task)
    except Unknown:
        return GONE
    told: dict[str, Any] = {"task": task.id, "status": task.status, "result": task.result}
    headers = sign(orjson.dumps(told), settings)
    answer = await fetcher.post(letter.url, told, key=current().idempotency_key, headers=headers)
    return Done(result={"status": answer.status})


def sign(body: bytes, settings: WebSettings) -> dict[str, str]:
    """The header by which the receiver knows that the body is ours: HMAC-SHA256 with the key of the settings."""
    if settings.callback_key is None:
        return {}
    key = settings.callback_key.get_secret_value().encode()
    return {SIGNATURE: f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"}
