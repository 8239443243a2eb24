"""A backend that costs almost nothing: a raw protocol and canned answers of both APIs."""

import asyncio
import os
import re
from typing import Any

import httptools
import uvloop

MODEL = "bench:latest"
ASKED = re.compile(rb'"(?:num_predict|max_tokens)":\s*(\d+)')
CREATED = '"created_at":"2026-01-01T00:00:00Z"'
FIGURES = '"total_duration":1,"load_duration":1,"prompt_eval_count":5,"prompt_eval_duration":1,"eval_duration":1'
CHUNK = '"id":"c","object":"chat.completion.chunk","created":1,"model":"bench"'
OLLAMA = (f'{{"model":"{MODEL}",{CREATED},"message":{{"role":"assistant","content":" word"}},"done":false}}\n').encode()
OLLAMA_END = (
    f'{{"model":"{MODEL}",{CREATED},"message":{{"role":"assistant","content":""}},'
    f'"done":true,"done_reason":"stop",{FIGURES},"eval_count":%d}}\n'
).encode()
SSE = (f'data: {{{CHUNK},"choices":[{{"index":0,"delta":{{"content":" word"}},"finish_reason":null}}]}}\n\n').encode()
SSE_END = (
    f'data: {{{CHUNK},"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]}}\n\ndata: [DONE]\n\n'
).encode()
WHOLE = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"%b"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":5,"completion_tokens":%d,"total_tokens":9}}'
)
LISTED = f'"name":"{MODEL}","model":"{MODEL}","size":1000'
ABOUT = {
    b"/api/tags": f'{{"models":[{{{LISTED}}}]}}'.encode(),
    b"/api/ps": f'{{"models":[{{{LISTED},"size_vram":1000}}]}}'.encode(),
    b"/api/version": b'{"version":"0.12.6"}',
    b"/v1/models": b'{"object":"list","data":[{"id":"bench","object":"model"}]}',
}


class Backend(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.url, self.body = b"", b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url, self.body = url, b""

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if (about := ABOUT.get(self.url)) is not None:
            self.whole(about)
            return
        asked = ASKED.search(self.body)
        tokens = int(asked[1]) if asked else 4
        if self.url.startswith(b"/api/"):
            self.stream(b"application/x-ndjson", OLLAMA, tokens, OLLAMA_END % tokens)
        elif b'"stream":true' in self.body.replace(b" ", b""):
            self.stream(b"text/event-stream", SSE, tokens, SSE_END)
        else:
            self.whole(WHOLE % (b" word" * tokens, tokens))

    def whole(self, body: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def stream(self, kind: bytes, piece: bytes, tokens: int, end: bytes) -> None:
        # every token is a chunk of its own, as real servers send them
        chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % kind
        self.transport.write(head + chunk * tokens + b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end))


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, os.read, 0, 1)
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(main())
