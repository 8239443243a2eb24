"""A GGUF file as a backend: a child process that serves it with llama.cpp, and dies with its parent."""

import argparse
import asyncio
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import structlog

from gristmill.errors import Refused
from gristmill.settings import BackendSettings

log = structlog.get_logger(__name__)


class Child:
    """The process that serves one GGUF file on a port of its own choice."""

    def __init__(self, settings: BackendSettings, model: str) -> None:
        self._settings, self._model = settings, model
        self._process: asyncio.subprocess.Process | None = None
        self._complaint = ""  # the last logged reason, so that not every probe logs it again

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self) -> str:
        """Start it; where it listens."""
        try:
            return await self._start()
        except OSError as wrong:
            if str(wrong) != self._complaint:
                self._complaint = str(wrong)
                log.warning("embedded model did not start", backend=self._settings.name, reason=self._complaint)
            raise

    async def _start(self) -> str:
        options = self._settings
        if options.gguf is None or not options.gguf.is_file():
            raise OSError(f"there is no file {options.gguf}")
        arguments = ["--gguf", str(options.gguf), "--model", self._model, "--parallel", str(options.parallel)]
        arguments += ["--context", str(options.context), "--threads", str(options.threads)]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gristmill.router.embedded",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        async for line in self._process.stdout:  # llama.cpp may write lines of its own
            if line.startswith(b'{"listening":'):
                log.info("embedded model serves", backend=options.name, model=self._model)
                return orjson.loads(line)["listening"]
        raise OSError(f"llama.cpp could not serve {options.gguf}; is gristmill[llm] installed, and is it a GGUF file?")

    async def stop(self) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # the child takes this as its parent's end
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _serve(arguments: argparse.Namespace) -> None:
    server = _server(arguments)
    sys.stdout.write('{"listening": "' + server.listening_address + '"}\n')
    sys.stdout.flush()
    while os.read(0, 4096):  # until the parent is gone, however it went
        pass
    os._exit(0)  # llama.cpp's threads have nothing to save, and joining them may take as long as a prompt


def _server(arguments: argparse.Namespace) -> Any:
    try:
        llama: Any = import_module("xllamacpp")  # an extra that only this child needs; it has no types
    except ImportError as missing:
        raise Refused("An embedded backend needs llama.cpp: pip install 'gristmill[llm]'.") from missing
    params = llama.CommonParams()
    params.model.path = str(arguments.gguf)
    params.model_alias = {arguments.model}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_parallel, params.n_ctx = arguments.parallel, arguments.context * arguments.parallel
    params.embedding = False
    params.ui, params.verbosity = False, 0
    params.cpuparams.n_threads = arguments.threads or os.cpu_count() or 1
    return llama.Server(params)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=0)
    _serve(parser.parse_args())


if __name__ == "__main__":
    main()
