"""`gristmill router`: one endpoint for every LLM client of the house."""

from typing import Annotated

import typer
import uvloop

from gristmill.cli.output import Json, Misused, err, say_json
from gristmill.cli.session import load_settings
from gristmill.router import serve
from gristmill.settings import RouterSettings
from gristmill.telemetry import set_up_logs


def register(root: typer.Typer, text: str) -> None:
    root.command("router")(router)


def router(
    host: Annotated[str | None, typer.Option(help="The address to listen on instead of the configured one.")] = None,
    port: Annotated[int | None, typer.Option(help="The port instead of the configured one; 0 takes any.")] = None,
    json: Json = False,
) -> None:
    """Serve the LLM router until Ctrl-C: Ollama's and OpenAI's API on one port, priorities, preemption.

    Example: gristmill router --port 11430, then OLLAMA_HOST=127.0.0.1:11430 ollama run qwen3
    """
    if port is not None and not 0 <= port <= 65535:
        raise Misused(f"--port {port} is no port: write a number from 0 (any free port) to 65535.")
    settings = load_settings()
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}

    def reread() -> RouterSettings:
        return load_settings().router.model_copy(update=given)

    ours = settings.router.model_copy(update=given)
    set_up_logs(settings.log)

    def listening(port: int) -> None:
        if json:
            say_json({"host": ours.host, "port": port, "gpu": len(ours.gpu_backends), "cpu": len(ours.cpu_backends)})
        else:
            err.print(f"The router listens on {ours.host}:{port}; Ctrl-C stops it.", highlight=False)

    uvloop.run(serve(ours, listening, reread))
