"""`gristmill db`: where the database is, whether it runs, and what its schema is."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, emit, err, make_facts, say, say_json
from gristmill.cli.session import load_settings, run
from gristmill.db import (
    Database,
    Embedded,
    EmbeddedStatus,
    SchemaState,
    bring_up_to_date,
    plainly,
    programs_for,
    schema_state,
    without_secret,
)
from gristmill.errors import Refused
from gristmill.settings import Settings, environment

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="db", help=text)


@app.command()
def status(json: Json = False) -> None:
    """Where the database is, whether it runs, how large it is, and whether its schema fits.

    Example: gristmill db status --json
    """
    settings = load_settings()
    embedded = None if settings.database_url else Embedded(settings.data).status()
    running = embedded is None or embedded.running
    schema = run(_load_schema(_url_of(settings))) if running else None
    data = {"where": _describe_place(settings), "embedded": asdict(embedded) if embedded else None, "schema": schema}
    emit(json, data, lambda: _status_view(settings, embedded, schema))


@app.command()
def start(json: Json = False) -> None:
    """Start the embedded PostgreSQL, if it does not run yet; every other command does so by itself.

    Example: gristmill db start
    """
    embedded = _require_embedded(load_settings())
    with err.status("Starting PostgreSQL …"):
        was = embedded.running()
        embedded.start()
    found = embedded.status()
    done = "already runs" if was else "runs"
    emit(json, {"started": not was, **asdict(found)}, lambda: f"PostgreSQL {found.version} {done} (pid {found.pid}).")


@app.command()
def stop(
    immediate: Annotated[bool, typer.Option("--immediate", help="At once, leaving the next start to recover.")] = False,
    json: Json = False,
) -> None:
    """Stop the embedded PostgreSQL; the next command that needs it starts it again.

    Example: gristmill db stop
    """
    embedded = _require_embedded(load_settings())
    with err.status("Stopping PostgreSQL …"):
        was = embedded.stop("immediate" if immediate else "fast")
    emit(json, {"stopped": was}, lambda: "PostgreSQL has stopped." if was else "PostgreSQL was not running.")


@app.command()
def migrate(json: Json = False) -> None:
    """Bring the schema up to date; every other command does so by itself.

    Example: gristmill db migrate
    """
    settings = load_settings()
    with err.status("Migrating …"):
        applied = run(_migrate(_start_server(settings)))
    sentence = f"Applied {', '.join(applied)}." if applied else "The schema is up to date."
    emit(json, {"applied": applied}, lambda: sentence)


@app.command()
def url(
    secret: Annotated[bool, typer.Option("--secret", help="With the password.")] = False, json: Json = False
) -> None:
    """Print where to connect, for psql and other programs.

    Example: psql "$(gristmill db url --secret)"
    """
    found = _url_of(load_settings())
    shown = found if secret else without_secret(found)[0]
    say_json({"url": shown}) if json else say(shown)


@app.command()
def psql(
    words: Annotated[list[str] | None, typer.Argument(help="Arguments for psql, after --.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Only print the command that would run.")] = False,
) -> None:
    """Open psql on the database, or run one statement.

    Example: gristmill db psql -- -c "SELECT count(*) FROM tasks"
    """
    settings = load_settings()
    binary = programs_for(None, settings.data) / "psql"
    if not binary.exists():
        raise Refused('There is no psql here: install postgresql-client, then psql "$(gristmill db url --secret)".')
    url, secret = without_secret(_start_server(settings))
    command = [str(binary), url, *(words or [])]
    if json:
        say_json({"command": command})
    else:
        # the password goes through the environment: every user of the machine can read the arguments
        os.execve(binary, command, environment(PGPASSWORD=secret) if secret else environment())


def _status_view(settings: Settings, embedded: EmbeddedStatus | None, schema: SchemaState | None) -> RenderableType:
    rows: list[tuple[str, Any]] = [("where", _describe_place(settings))]
    if embedded:
        running = f"yes, pid {embedded.pid}" if embedded.running else "no; it starts when it is needed"
        rows += [
            ("running", running),
            ("version", embedded.version),
            ("size", f"{embedded.size / 2**20:,.0f} MB"),
            ("log", embedded.log),
        ]
    return make_facts([*rows, ("schema", describe_schema(schema) if schema else None)])


def describe_schema(schema: SchemaState) -> str:
    if schema.older:
        return "made before the first release: start with an empty database"
    if schema.unknown:
        return f"newer than this program ({', '.join(schema.unknown)}): upgrade Gristmill"
    if schema.changed:
        return f"of another Gristmill ({', '.join(schema.changed)} differ): install the one that migrated it"
    if schema.pending:
        number = "1 file is" if len(schema.pending) == 1 else f"{len(schema.pending)} files are"
        return f"{number} pending ({', '.join(schema.pending)}): gristmill db migrate"
    return f"up to date ({schema.applied} migrations)"


def _describe_place(settings: Settings) -> str:
    return Database(settings.database_url).shown if settings.database_url else f"embedded in {settings.data}"


def _url_of(settings: Settings) -> str:
    return settings.database_url or Embedded(settings.data).url()


def _start_server(settings: Settings) -> str:
    if settings.database_url:
        return settings.database_url
    with err.status("Starting PostgreSQL …"):
        return Embedded(settings.data).start()


def _require_embedded(settings: Settings) -> Embedded:
    if settings.database_url:
        raise Refused("GRISTMILL_DATABASE_URL names another server: it is started and stopped where it runs.")
    return Embedded(Path(settings.data))


async def _load_schema(url: str) -> SchemaState:
    with plainly():
        async with await Database(url).connect("status") as connection:
            return await schema_state(connection)


async def _migrate(url: str) -> list[str]:
    with plainly():
        async with await Database(url).connect("migrate") as connection:
            return await bring_up_to_date(connection)
