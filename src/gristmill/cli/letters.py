"""Letters from the command line, checked against the handlers that will answer them."""

import dataclasses
import json
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from gristmill.cli.handlers import open_handlers
from gristmill.cli.output import Misused, shorten
from gristmill.cli.session import Session
from gristmill.errors import Permanent, Refused
from gristmill.queue import Handler, Letter, decode

MOST_NAMED = 12


PAYLOAD = "The letter, as JSON; @FILE reads it from a file, - from the standard input."


def read_payload(text: str) -> dict[str, Any]:
    """A JSON object; Misused says where the text is wrong."""
    body = _read_body(text)
    try:
        found = json.loads(body)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else "too deep"
        raise Misused(f"The payload is not JSON ({where}): {shorten(body)}") from None
    if not isinstance(found, dict):
        raise Misused("The payload must be a JSON object, for example '{\"item\": 7}'.")
    return cast(dict[str, Any], found)


def _read_body(text: str) -> str:
    """What `@file` and `-` stand for."""
    if text != "-" and not text.startswith("@"):
        return text
    try:
        return sys.stdin.buffer.read().decode() if text == "-" else Path(text[1:]).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Misused(f"The payload in {'the standard input' if text == '-' else text[1:]} is not UTF-8.") from None
    except OSError as error:
        raise Misused(f"The payload cannot be read from {text[1:]} ({error.strerror}).") from None


async def find_letter(kind: str, payload: Mapping[str, Any], app: str | None, at: Session) -> tuple[Handler, Letter]:
    """The letter of this kind, and who will answer it."""
    locator = app or at.settings.app
    async with open_handlers(locator, at.db, at.settings) as handlers:
        handler = handlers.get(kind)
        if handler is None:
            raise Refused(_explain_unknown_kind(kind, sorted(handlers), locator))
    _refuse_unknown_fields(handler.letter, payload)
    try:
        return handler, decode(handler.letter, json.dumps(payload))
    except Permanent as error:
        text = str(error)
        raise Refused(f"{text[0].upper()}{text[1:]}.") from error


def _refuse_unknown_fields(letter: type[Letter], payload: Mapping[str, Any]) -> None:
    """Refuses unknown fields: a misspelt field would otherwise get its default."""
    known = [field.name for field in dataclasses.fields(letter)] if dataclasses.is_dataclass(letter) else None
    if known is None or not (unknown := [name for name in payload if name not in known]):
        return
    named = ", ".join(f"“{shorten(name, 40)}”" for name in unknown[:MOST_NAMED])
    raise Refused(f"{letter.kind} has no {named}; it has {', '.join(known) or 'no fields'}.")


def _explain_unknown_kind(kind: str, known: list[str], locator: str) -> str:
    if not known:
        return f"No handler answers {kind}: {locator} binds none; name yours with --app module:name."
    near = get_close_matches(kind, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    more = ", …" if len(known) > MOST_NAMED else ""
    return f"No handler in {locator} answers {kind}.{hint} It knows {', '.join(known[:MOST_NAMED])}{more}."
