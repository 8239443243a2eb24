"""Why a server could not be used, in one plain sentence: where it is, and what it said itself."""

import re
import socket
import ssl
from ast import literal_eval
from os import strerror

LONGEST = 200  # characters of such a sentence
MOST_ODD = 0.1  # share of characters that nobody can read; more of them are no words
BYTES = re.compile(r"""\bb'(?:[^'\\]|\\.)*'|\bb"(?:[^"\\]|\\.)*\"""")  # as libraries show them: b'* OK ready'
ENDED = ("EOF", "-ERR EOF", "socket error")  # what libraries say where a connection ends


def name_place(host: str, port: int | None) -> str:
    """`mail.acme.test:993`; the address of a machine may have colons of its own."""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown


def read_words(said: str | bytes) -> str:
    """What a server said, decoded and on one line; nothing if nobody can read it."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else BYTES.sub(_decode, said)
    words = " ".join(text.split())
    odd = sum(not one.isprintable() or one == "�" for one in words)
    if odd > len(words) * MOST_ODD:
        return ""
    return "".join(one if one.isprintable() else "�" for one in words)


def _decode(found: re.Match[str]) -> str:
    try:
        return bytes(literal_eval(found.group())).decode(errors="replace")
    except (ValueError, SyntaxError):
        return found.group()


def say(sentence: str, said: str | bytes = "") -> str:
    """A sentence with the words of the server, if it said any; no longer than people read."""
    words = read_words(said).rstrip(".")
    if not words:
        return f"{sentence}."
    room = max(LONGEST - len(sentence) - 3, 40)
    return f"{sentence}: {words if len(words) <= room else words[: room - 1] + '…'}."


def explain_failure(place: str, error: BaseException) -> str:
    """Why nobody there answered, or not as we expected."""
    import aiohttp  # noqa: PLC0415 it takes a tenth of a second, and few processes call servers

    error = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return say(f"The certificate of {place} is not valid", error.verify_message)
    if isinstance(error, ssl.SSLError):
        return f"{place} does not speak TLS as we do: check its port, and whether it speaks TLS there."
    if isinstance(error, TimeoutError):
        return f"{place} did not answer in time."
    if isinstance(error, socket.gaierror):
        return say(f"{place} cannot be reached", error.strerror or "nobody knows its name")
    if isinstance(error, BrokenPipeError | ConnectionResetError | EOFError | aiohttp.ServerDisconnectedError):
        return f"{place} broke off the connection."
    if isinstance(error, aiohttp.ClientPayloadError):
        return f"{place} broke off in the middle of its answer."
    if isinstance(error, aiohttp.ClientError):
        return f"{place} does not answer as a web server does: check its address and port."
    if isinstance(error, OSError) and error.errno:
        return say(f"{place} cannot be reached", strerror(error.errno))
    said = error.args[0] if error.args and isinstance(error.args[0], str | bytes) else ""
    if read_words(said).startswith(ENDED):
        return f"{place} broke off the connection."
    return say(f"{place} does not answer as a server of this kind", said)
