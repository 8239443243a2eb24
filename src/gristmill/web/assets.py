"""Styles, scripts and icons of the console: served under a version, so that browsers keep them for a year.

The version is made of all files together: a script that imports its neighbour gets the one it was written with. htmx
comes from the wheel django-htmx, as data; a file with another digest than ours is not served.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Request, Response

from gristmill.errors import Refused
from gristmill.serving import Problem

FOLDER = Path(__file__).parent / "static"
HTMX = "static/django_htmx/htmx-2.min.js"  # 2.0.10: the 4 of this wheel is a beta
HTMX_SHA256 = "71ea67185bfa8c98c39d31717c6fce5d852370fcdfd129db4543774d3145c0de"
FOR_EVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
ROUTES = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Asset:
    """A file as it is, and packed."""

    kind: str
    plain: bytes
    packed: bytes


@dataclass(frozen=True)
class Assets:
    """All files by name."""

    version: str
    files: Mapping[str, Asset]


@cache
def load_assets() -> Assets:
    texts = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}
    texts["htmx.js"] = read_htmx()
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(name.encode() + b"\0" + text)
    return Assets(digest.hexdigest()[:12], {name: pack(name, text) for name, text in texts.items()})


def read_htmx() -> bytes:
    """The script from the wheel; its Python code is never imported."""
    spec = find_spec("django_htmx")
    if spec is None or not spec.submodule_search_locations:
        raise Refused("The console needs the wheel django-htmx: pip install --no-deps django-htmx==1.29.0.")
    text = (Path(spec.submodule_search_locations[0]) / HTMX).read_bytes()
    if hashlib.sha256(text).hexdigest() != HTMX_SHA256:
        raise Refused("The wheel django-htmx holds an htmx that was not tested here: install version 1.29.0.")
    return text


def pack(name: str, text: bytes) -> Asset:
    kind = TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Asset(kind, text, gzip.compress(text, 9, mtime=0))


def link_asset(name: str) -> str:
    """The address of a file, with the version."""
    return f"/static/{load_assets().version}/{name}"


@ROUTES.get("/static/{version}/{name}")
async def send_asset(version: str, name: str, request: Request) -> Response:
    assets = load_assets()
    asset = assets.files.get(name)
    if asset is None:
        raise Problem(404, "There is no such file.")
    # a page from before an update gets the files of today, and does not keep them under the old address
    headers = {"Cache-Control": FOR_EVER if version == assets.version else "no-cache", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.kind)
    return Response(asset.plain, headers=headers, media_type=asset.kind)
