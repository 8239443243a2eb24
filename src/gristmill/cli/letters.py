"""Letters from the command line, checked against the handlers that will answer them."""

import json
from difflib import get_close_matches
from typing import Any, cast

from gristmill.app import load_handlers
from gristmill.cli.session import Session
from gristmill.errors import Permanent, Refused
from gristmill.queue import Handler, Letter, decode

MOST_NAMED = 12


def payload_of(text: str) -> dict[str, Any]:
    """A JSON object, or one sentence about where it stops being one."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused(f"The payload is not JSON ({error.msg} at character {error.pos + 1}): {text[:80]}") from None
    if not isinstance(found, dict):
        raise Refused("The payload must be a JSON object, for example '{\"item\": 7}'.")
    return cast(dict[str, Any], found)


def known_letter(kind: str, payload: str, app: str | None, at: Session) -> tuple[Handler, Letter]:
    """The letter of this kind, and who will answer it."""
    locator = app or at.settings.app
    handlers = load_handlers(locator, at.db, at.settings)
    handler = handlers.get(kind)
    if handler is None:
        raise Refused(_unknown(kind, sorted(handlers), locator))
    payload_of(payload)
    try:
        return handler, decode(handler.letter, payload)
    except Permanent as error:
        text = str(error)
        raise Refused(f"{text[0].upper()}{text[1:]}.") from error


def _unknown(kind: str, known: list[str], locator: str) -> str:
    if not known:
        return f"No handler answers {kind}: {locator} binds none; name yours with --app module:name."
    near = get_close_matches(kind, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    more = ", …" if len(known) > MOST_NAMED else ""
    return f"No handler in {locator} answers {kind}.{hint} It knows {', '.join(known[:MOST_NAMED])}{more}."
