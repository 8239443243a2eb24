"""How an action answers: in place for a page with scripts, by leading back for one without."""

from urllib.parse import quote, urlsplit

import msgspec
from fastapi import Request, Response
from fastapi.responses import RedirectResponse

SAID = "gristmill_said"  # a cookie that the next page shows and removes


def is_partial(request: Request) -> bool:
    """Whether a script asks for a piece of a page, and not the browser for a whole one."""
    return request.headers.get("hx-request") == "true" and "hx-boosted" not in request.headers


def answer_action(
    request: Request, text: str, *, back: str, undo: str | None = None, go: str | None = None
) -> Response:
    """Say what was done; `go` leads to another page, `undo` is the address that takes it back."""
    if is_partial(request):
        if go is not None:
            return remember(Response(status_code=204, headers={"HX-Redirect": go}), text)
        said = msgspec.json.encode({"said": {"text": text, "undo": undo}})
        # header lines are ASCII: JSON has a way to write everything else
        return Response(status_code=204, headers={"HX-Trigger": write_ascii(said.decode())})
    return remember(RedirectResponse(go or back, status_code=303), text)


def remember(response: Response, text: str) -> Response:
    response.set_cookie(SAID, quote(text), max_age=60, samesite="strict", path="/")
    return response


def write_ascii(json: str) -> str:
    units = json.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def stay_here(address: str | None, otherwise: str) -> str:
    """An address of this console that a form names; never one of another site."""
    parts = urlsplit(address or "")
    if not address or parts.scheme or parts.netloc or not address.startswith("/") or address.startswith(("//", "/\\")):
        return otherwise
    return address
