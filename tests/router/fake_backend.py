"""A backend that behaves like the real ones: memory, load times, slots, keep_alive, slow cancels."""

import argparse
import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # also when Python was told to leave it out

import fake_replies as replies

GB = 1024**3
VERSION = "0.12.6"


def nothing_said(model: str, reason: str) -> dict[str, Any]:
    """What Ollama answers when it only loads or unloads."""
    said = {"model": model, "created_at": "2026-01-01T00:00:00Z", "response": ""}
    return {**said, "done": True, "done_reason": reason}


@dataclass
class Loaded:
    size: int
    expires: float
    users: int = 0


@dataclass
class Behaviour:
    """What tests change while it runs, by POST /fake/behaviour."""

    vram: int = 24 * GB
    parallel: int = 2
    load: float = 0.0
    prefill: float = 0.0
    token: float = 0.0
    tokens: int = 8
    cancel: float = 0.0  # how long a slot stays taken after its client went away
    mode: str = "ok"  # ok, error, throttle, hang, truncate, error_line, garbage, silent
    after: int = 2  # tokens before it truncates or falls silent
    models: dict[str, int] = field(default_factory=dict)


class Stopped(Exception):
    """The client went away."""


class Fake:
    def __init__(self, behaviour: Behaviour) -> None:
        self.be = behaviour
        self.loaded: dict[str, Loaded] = {}
        self.slots = 0
        self.room = asyncio.Condition()
        self.stats: dict[str, Any] = {
            "started": 0,
            "finished": 0,
            "cancelled": 0,
            "most_running": 0,
            "loads": [],
            "unloads": [],
            "bodies": [],
            "headers": [],
            "sent": 0,
            "blobs": {},
        }
        self.running = 0

    # ── HTTP ────────────────────────────────────────────────────────────────

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.one(reader, writer):
                pass
        except (Stopped, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:] if line)}
        raw = await self.body(reader, headers)
        if path.startswith("/api/blobs/"):
            return self.blob(method, path.removeprefix("/api/blobs/"), raw, writer)
        body = json.loads(raw) if raw else {}
        if path.startswith("/fake/"):
            await self.control(path, body, writer)
            return True
        if self.be.mode == "silent":
            await asyncio.sleep(3600)
        watch = asyncio.create_task(reader.read(1))
        work = asyncio.create_task(self.dispatch(method, path, body, headers, writer))
        await asyncio.wait({watch, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            return await work
        # the client half-closed or left: stop, however slowly, then close our side: our word that we stopped
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return False

    async def body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await reader.readexactly(int(headers.get("content-length") or 0))
        raw = bytearray()
        while size := int(await reader.readline(), 16):
            raw += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return bytes(raw)

    def blob(self, method: str, digest: str, raw: bytes, writer: asyncio.StreamWriter) -> bool:
        if method == "HEAD":
            known = digest in self.stats["blobs"]
            writer.write(f"HTTP/1.1 {200 if known else 404} X\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        if digest != f"sha256:{hashlib.sha256(raw).hexdigest()}":
            return self.reply(writer, 400, {"error": "digest mismatch"})
        self.stats["blobs"][digest] = len(raw)
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        return True

    def library(self, path: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """The calls that change which models there are."""
        if path == "/api/copy":
            source = self.full(body["source"])
            if source not in self.be.models:
                return self.reply(writer, 404, {"error": f"model '{body['source']}' not found"})
            self.be.models[self.full(body["destination"])] = self.be.models[source]
            return self.empty(writer)
        model = self.full(body.get("model") or body["name"])
        if path in ("/api/delete", "/api/push") and model not in self.be.models:
            return self.reply(writer, 404, {"error": f"model '{model}' not found"})
        if path == "/api/delete":
            del self.be.models[model]
            self.loaded.pop(model, None)
            return self.empty(writer)
        if path != "/api/push":
            self.be.models[model] = GB
        if body.get("stream") is False:
            return self.reply(writer, 200, {"status": "success"})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
        for status in ({"status": "pulling manifest"}, {"status": "downloading", "total": 9, "completed": 4}):
            self.chunk(writer, replies.line(status))
        self.chunk(writer, replies.line({"status": "success"}))
        writer.write(b"0\r\n\r\n")
        return True

    def empty(self, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return True

    async def dispatch(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        headers: dict[str, str],
        writer: asyncio.StreamWriter,
    ) -> bool:
        if method == "GET":
            return self.reply(writer, *self.about(path))
        self.stats["bodies"] = [*self.stats["bodies"][-20:], {"path": path, **body}]
        self.stats["headers"] = [*self.stats["headers"][-20:], headers]
        if self.be.mode == "hang":
            await asyncio.sleep(3600)
        if path in ("/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"):
            return self.library(path, body, writer)
        model = self.full(body.get("model", ""))
        if path == "/api/show":
            return (
                self.reply(
                    writer,
                    200,
                    {
                        "details": {"family": "fake"},
                        "model_info": {},
                        "capabilities": ["completion", "tools"],
                        "template": "",
                    },
                )
                if model in self.be.models
                else self.reply(writer, 404, {"error": f"model '{model}' not found"})
            )
        if model not in self.be.models:
            return self.reply(writer, 404, {"error": f"model '{model}' not found"})
        if path == "/api/generate" and not body.get("prompt") and body.get("keep_alive") == 0:
            self.unload(model)
            return self.reply(writer, 200, nothing_said(model, "unload"))
        if path in ("/api/generate", "/api/chat") and "embed" in model:
            return self.reply(writer, 400, {"error": f'"{model}" does not support generate'})
        said = {"/api/generate": "prompt", "/api/chat": "messages", "/api/embed": "input"}.get(path)
        loads_only = said is not None and not body.get(said)
        if not loads_only and self.be.mode == "error":
            return self.reply(writer, 500, {"error": "the model runner has unexpectedly stopped"})
        if not loads_only and self.be.mode == "throttle":
            return self.reply(writer, 429, {"error": "slow down"}, "Retry-After: 1\r\n")
        holder = await self.hold(model, body)
        try:
            if path == "/api/embed" and not body.get("input"):
                return self.reply(writer, 200, {"model": model, "embeddings": []})
            if loads_only:
                spoken = {"message": {"role": "assistant", "content": ""}} if path == "/api/chat" else {}
                return self.reply(writer, 200, {**nothing_said(model, "load"), **spoken})
            return await self.run(path, body, model, writer)
        finally:
            holder.users -= 1

    def reply(self, writer: asyncio.StreamWriter, status: int, body: Any, extra: str = "") -> bool:
        raw = json.dumps(body).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nX-Fake: yes\r\n{extra}"
            f"Content-Length: {len(raw)}\r\n\r\n".encode()
            + raw
        )
        return True

    async def control(self, path: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if path == "/fake/behaviour":
            for name, value in body.items():
                setattr(self.be, name, value)
        if path == "/fake/forget":
            self.loaded.clear()
        self.reply(writer, 200, {**self.stats, "running": self.running, "loaded": list(self.loaded)})

    def about(self, path: str) -> tuple[int, Any]:
        self.expire()
        details = {
            "parent_model": "",
            "format": "gguf",
            "family": "fake",
            "families": ["fake"],
            "parameter_size": "1B",
            "quantization_level": "Q4",
        }
        if path == "/api/tags":
            return 200, {
                "models": [
                    {
                        "name": m,
                        "model": m,
                        "modified_at": "2026-01-01T00:00:00Z",
                        "size": s,
                        "digest": "0" * 64,
                        "details": details,
                    }
                    for m, s in self.be.models.items()
                ]
            }
        if path == "/api/ps":
            return 200, {
                "models": [
                    {
                        "name": m,
                        "model": m,
                        "size": i.size,
                        "size_vram": i.size,
                        "digest": "0" * 64,
                        "details": details,
                        "expires_at": "2027-01-01T00:00:00Z",
                    }
                    for m, i in self.loaded.items()
                ]
            }
        if path == "/api/version":
            return 200, {"version": VERSION}
        if path == "/v1/models":
            return 200, {
                "object": "list",
                "data": [
                    {"id": m.removesuffix(":latest"), "object": "model", "created": 1, "owned_by": "fake"}
                    for m in self.be.models
                ],
            }
        return 404, {"error": "not found"}

    # ── memory ──────────────────────────────────────────────────────────────

    def full(self, model: str) -> str:
        return model if ":" in model else f"{model}:latest"

    def expire(self) -> None:
        for model in [m for m, i in self.loaded.items() if i.expires <= time.monotonic() and not i.users]:
            self.unload(model)

    def unload(self, model: str) -> None:
        if model in self.loaded:
            self.loaded[model].expires = 0.0
            if not self.loaded[model].users:
                del self.loaded[model]
                self.stats["unloads"].append(model)

    async def hold(self, model: str, body: dict[str, Any]) -> Loaded:
        """The model in memory: loads wait until the memory of busy models is free, as the real one does."""
        self.expire()
        while model not in self.loaded:
            need = self.be.models[model]
            for other in [m for m, i in sorted(self.loaded.items(), key=lambda p: p[1].expires) if not i.users]:
                if sum(i.size for i in self.loaded.values()) + need <= self.be.vram:
                    break
                self.unload(other)
            if sum(i.size for i in self.loaded.values()) + need > self.be.vram:
                await asyncio.sleep(0.005)
                continue
            self.loaded[model] = Loaded(need, time.monotonic() + 300, users=1)
            try:
                await asyncio.sleep(self.be.load)
            except asyncio.CancelledError:
                self.loaded.pop(model, None)
                raise
            self.loaded[model].users -= 1
            self.stats["loads"].append(model)
        held = self.loaded[model]
        held.users += 1
        keep = body.get("keep_alive")
        seconds = (
            {None: 300.0, -1: 1e9}.get(keep, 300.0)
            if not isinstance(keep, (int, float)) or keep in (-1,)
            else float(keep)
        )
        held.expires = time.monotonic() + seconds
        return held

    # ── answers ─────────────────────────────────────────────────────────────

    async def run(self, path: str, body: dict[str, Any], model: str, writer: asyncio.StreamWriter) -> bool:
        async with self.room:
            await self.room.wait_for(lambda: self.slots < self.be.parallel)
            self.slots += 1
        self.running += 1
        self.stats["started"] += 1
        self.stats["most_running"] = max(self.stats["most_running"], self.running)
        try:
            await asyncio.sleep(self.be.prefill)
            result = await self.answer(path, body, model, writer)
            self.stats["finished"] += 1
            return result
        except BaseException:
            self.stats["cancelled"] += 1
            if self.be.cancel:
                await asyncio.sleep(self.be.cancel)
            raise
        finally:
            self.running -= 1
            self.slots -= 1
            async with self.room:
                self.room.notify_all()

    async def answer(self, path: str, body: dict[str, Any], model: str, writer: asyncio.StreamWriter) -> bool:
        if "embed" in path:
            return self.reply(writer, 200, replies.embeddings(path, body))
        if body.get("stream", path.startswith("/api/")):
            return await self.stream(path, body, model, writer)
        said = replies.choices(path, body, self.be.tokens)
        if path == "/v1/responses":
            return self.reply(writer, 200, replies.response(body, model, said[0], "completed"))
        if path.startswith("/v1/"):
            return self.reply(writer, 200, replies.openai_whole(path, body, model, said))
        return self.reply(writer, 200, replies.ollama_whole(path, body, model, said[0]))

    async def stream(self, path: str, body: dict[str, Any], model: str, writer: asyncio.StreamWriter) -> bool:
        sse = path.startswith("/v1/")
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {'text/event-stream' if sse else 'application/x-ndjson'}\r\n"
            "Transfer-Encoding: chunked\r\nX-Fake: yes\r\n"
            "Connection: keep-alive, X-Hop\r\nX-Hop: secret\r\n\r\n".encode()
        )
        if self.be.mode == "garbage":
            return self.chunk(writer, b"<html>\n")
        for count, piece in enumerate(self.pieces(path, body, model)):
            if self.be.mode in ("truncate", "error_line", "stall") and count == self.be.after:
                if self.be.mode == "stall":
                    await asyncio.sleep(3600)
                if self.be.mode == "error_line":
                    self.chunk(writer, b'{"error":"out of memory"}\n')
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
                raise Stopped
            self.chunk(writer, piece)
            self.stats["sent"] += 1
            if self.be.token:
                await asyncio.sleep(self.be.token)
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def pieces(self, path: str, body: dict[str, Any], model: str) -> Iterator[bytes]:
        said = replies.choices(path, body, self.be.tokens)
        if path == "/v1/responses":
            yield from replies.response_events(body, model, said[0])
        elif path.startswith("/v1/"):
            for index, choice in enumerate(said):
                for event in replies.openai_pieces(path, body, model, index, choice):
                    yield replies.event(event)
            yield from replies.openai_end(body, path, model, said)
        else:
            yield from replies.ollama_pieces(path, body, model, said[0])
            yield json.dumps(replies.ollama_last(path, body, model, said[0])).encode() + b"\n"

    def chunk(self, writer: asyncio.StreamWriter, data: bytes) -> bool:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--behaviour", default="{}")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    fake = Fake(Behaviour(**json.loads(arguments.behaviour)))
    server = await asyncio.start_server(fake.connection, "127.0.0.1", arguments.port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 how the parent learns the port
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    watch = asyncio.get_running_loop().run_in_executor(None, os.read, 0, 1)  # the parent's end is ours
    await asyncio.wait(
        {asyncio.ensure_future(stop.wait()), asyncio.ensure_future(watch)},
        return_when=asyncio.FIRST_COMPLETED,
    )
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
