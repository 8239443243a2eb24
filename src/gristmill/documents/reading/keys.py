"""Keys of results: the hash of everything that a result depends on."""

import hashlib

import orjson

VERSION = "4"  # of all that turns bytes into text: what was read by another version is read anew


def make_key(*means: str | int | None) -> bytes:
    return hashlib.sha256(orjson.dumps(means)).digest()


def make_page_key(hash_: bytes, type: str | None, number: int, pixels: int, eyes: str = "") -> bytes:
    """Of a page: bytes, type, number, program, limits and the reader of pictures (`eyes`)."""
    return make_key(hash_.hex(), type, number, VERSION, pixels, eyes)
