"""A mail server on loopback: speaks SMTP with STARTTLS and logins, keeps the mails, and refuses what a test says."""

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class MailServer:
    """`refuse` maps the beginning of a command to the answer that it gets instead of the usual one."""

    port: int = 0
    mails: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    secured: int = 0
    refuse: dict[str, str] = field(default_factory=dict)
    password: str | None = None
    tls: ssl.SSLContext | None = None

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await self._say(writer, "220 test")
            while line := (await reader.readline()).decode().strip():
                if line.upper() == "STARTTLS" and self.tls:
                    await self._say(writer, "220 go ahead")
                    await writer.start_tls(self.tls)
                    self.secured += 1
                elif line.upper() == "DATA" and not self._find_refusal(line):
                    await self._say(writer, "354 go on")
                    self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                    await self._say(writer, self._find_refusal("END") or "250 taken")
                else:
                    await self._say(writer, self._find_refusal(line) or self._answer(line))
                if line.upper() == "QUIT":
                    break
        writer.close()

    async def _say(self, writer: asyncio.StreamWriter, text: str) -> None:
        writer.write(text.encode() + b"\r\n")
        await writer.drain()

    def _find_refusal(self, line: str) -> str | None:
        return next((answer for word, answer in self.refuse.items() if line.upper().startswith(word)), None)

    def _answer(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        match word.upper():
            case "EHLO":
                offers = ["AUTH PLAIN", *(["STARTTLS"] if self.tls and not self.secured else [])]
                return "\r\n".join(["250-test", *(f"250-{one}" for one in offers[:-1]), f"250 {offers[-1]}"])
            case "AUTH":
                _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                self.logins.append((user, password))
                return "235 welcome" if password == self.password else f"535 {password} is wrong"
            case "RCPT":
                self.recipients.append(rest)
                return "250 yes"
            case "QUIT":
                return "221 bye"
            case _:
                return "250 yes"


@asynccontextmanager
async def run_mail_server(*, tls: ssl.SSLContext | None = None, wrap: bool = False) -> AsyncIterator[MailServer]:
    """`wrap` speaks TLS from the first byte."""
    server = MailServer(tls=None if wrap else tls)
    running = await asyncio.start_server(server.speak, "127.0.0.1", 0, ssl=tls if wrap else None)
    server.port = running.sockets[0].getsockname()[1]
    async with running:
        yield server


def make_certificate(folder: Path, run: Callable[..., object] = subprocess.run) -> tuple[ssl.SSLContext, Path]:
    """A certificate for localhost that signs itself: the context of a server, and the file that clients may trust."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    run([*command, "-keyout", key, "-out", certificate, *name], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
