"""Finds the command that is meant, runs it, and turns whatever goes wrong into one sentence and an exit code."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, cast

import typer
from typer.exceptions import TyperException

from gristmill.cli.output import Misused, fail, shorten
from gristmill.doors import load_for_good
from gristmill.errors import GristmillError, Unknown

COMMANDS = {
    "up": "Start everything, and grind a folder.",
    "add": "Take in files, folders or patterns.",
    "watch": "Take in whatever appears or changes in a folder.",
    "source": "Mailboxes, repositories, calendars, folders: add, list, test, sync, verify.",
    "documents": "List documents, with how far each phase is.",
    "document": "One document: look at, read, retry, reindex, remove.",
    "import": "Load tables of records: CSV, JSON lines, XLSX.",
    "records": "Records: list, read, write out, embed, remove.",
    "search": "Find what documents say, by words and by meaning.",
    "ask": "Answer a question, every sentence with its passages.",
    "graph": "The graph: show a node, the path between two, find, export, aliases.",
    "serve": "Serve the API and the console, without workers.",
    "mcp": "Serve what is stored as tools for another agent (MCP, stdio).",
    "key": "Keys for the API and the console: add, list, revoke.",
    "worker": "Run workers that answer tasks.",
    "queue": "Queues: list, look at, limit, pause, resume, watch.",
    "task": "Tasks: list, look at, ask why, send, cancel, retry, move.",
    "group": "Groups: look at, watch, retry, cancel, seal.",
    "bulk": "One action on all tasks that fit: preview, run, stop, undo.",
    "dead": "Dead letters: count, list, cluster, replay, purge.",
    "schedule": "Schedules: list, add, remove, enable, disable, run.",
    "limiter": "Named limiters that handlers take from: list, set.",
    "link": "Links in documents: allow, deny, list, ask why.",
    "item": "What came in: list, look at, add, answer, move, cancel, reopen.",
    "convention": "Rules that people state about items: add, list, test, make of a decision.",
    "profile": "Who we are for a client, and how long before a deadline work begins.",
    "qualify": "Decide about past items again, and see what would differ.",
    "run": "Let agents do something, and follow it; show, answer, stop, watch a run.",
    "runs": "List runs of agents.",
    "agents": "What each agent does in runs, what it has cost, and how often it succeeded.",
    "question": "What agents ask a person: list, look at, answer.",
    "effects": "The ledger of what agents changed: list, look at.",
    "policy": "What agents may do without asking: show, set.",
    "memory": "What agents remember of the last days: list, forget.",
    "procedure": "How agents do things: add, list, remove.",
    "alarms": "Alarms: list, acknowledge, channels, test a channel.",
    "router": "Serve every LLM client on one port, with priorities.",
    "db": "The database: status, start, stop, migrate, url, psql.",
    "doctor": "Check everything, and say what to do.",
}
MODULES = {
    "import": "imports",
    "source": "sources",
    "queue": "queues",
    "task": "tasks",
    "group": "groups",
    "schedule": "schedules",
    "limiter": "limiters",
    "link": "links",
    "key": "keys",
    "question": "questions",
    "policy": "policies",
    "procedure": "procedures",
    "item": "items",
    "convention": "conventions",
    "profile": "profiles",
}
# families whose list is called `list`, and those whose is called `ls`: either word is understood everywhere
LISTS = {
    "list": ("queue", "task", "bulk", "dead", "schedule", "limiter", "alarms"),
    "ls": (
        *("source", "records", "key", "link", "item", "convention", "profile"),
        *("question", "effects", "memory", "procedure"),
    ),
}
STDOUT = 1
LONG_WORD = 80  # characters of an argument that a message repeats
LONGEST = 2_000  # characters of a message
UNEXPECTED = "run again with GRISTMILL_LOG_LEVEL=debug to see where"


def main(argv: Sequence[str] | None = None) -> int:
    """0 done, 1 refused or failed, 2 not understood, 130 interrupted."""
    code = _run(list(sys.argv[1:] if argv is None else argv))
    try:
        print(end="", flush=True)  # noqa: T201 only flushes; it does nothing where the shell closed stdout
    except OSError as error:
        # otherwise Python flushes again at its end, and prints a traceback of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        if code == 0 and not isinstance(error, BrokenPipeError):
            fail(f"The output cannot be written to stdout: {error.strerror}.", as_json=False)
        return code or 1
    return code


def _run(words: Sequence[str]) -> int:
    as_json = "--json" in words
    try:
        _refuse_other_encodings(words)
        words = _choose_server(name_list(words))
        code = build(words)(words, prog_name="gristmill", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except typer.Abort:
        fail("Nothing was done: it was not confirmed.", as_json=as_json)
        return 1
    except TyperException as error:
        if sentence := explain_misuse(error):
            fail(shorten_sentence(sentence, words), as_json=as_json)
        return error.exit_code
    except GristmillError as error:
        fail(shorten_sentence(tell_error(error), words), as_json=as_json)
        return 2 if isinstance(error, Misused) else 1
    except Exception as error:  # noqa: BLE001 the last one who can say something sensible about it
        return _report_unexpected(error, as_json=as_json)


def name_list(words: Sequence[str]) -> list[str]:
    """The words, with `ls` or `list` as the family of commands calls it."""
    for name, families in LISTS.items():
        for place, word in enumerate(words[:-1]):
            if word in COMMANDS:
                if word in families and words[place + 1] in LISTS:
                    return [*words[: place + 1], name, *words[place + 2 :]]
                break
    return list(words)


def _choose_server(words: Sequence[str]) -> Sequence[str]:
    """The words without --server; only a command that is named needs to know where it works."""
    if not any(word.startswith("--server") for word in words) and (not words or words[0] not in COMMANDS):
        return words
    from gristmill.cli.elsewhere import take_server  # noqa: PLC0415 --help needs none of it

    return take_server(words)


def build(words: Sequence[str] = ()) -> typer.Typer:
    """Loads only the command that is meant. Loading all takes a second; the others need only their line of help."""
    app = typer.Typer(
        name="gristmill",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Grinds documents into knowledge, and knowledge into work, on one PostgreSQL of your own.",
    )
    app.callback()(_root)
    wanted = next((word for word in words if not word.startswith("-")), None)
    completing = "_GRISTMILL_COMPLETE" in os.environ  # noqa: TID251 how the shell asks Typer, no setting of ours
    for name, text in COMMANDS.items():
        if name == wanted or completing:
            with load_for_good():
                module = importlib.import_module(f"gristmill.cli.{MODULES.get(name, name)}")
            cast(Callable[[typer.Typer, str], None], module.register)(app, text)
        else:
            app.command(name, help=text)(_stand_in)
    return app


def tell_error(error: GristmillError) -> str:
    """The sentence of an error; whoever sits at a terminal is also told the command that lists what there is."""
    if isinstance(error, Unknown) and error.listed_by:
        return f"{str(error).removesuffix('.')}: {error.listed_by} lists them."
    return str(error)


def shorten_sentence(sentence: str, words: Sequence[str]) -> str:
    """The sentence, with long words cut: a message must not repeat a megabyte of arguments."""
    for word in words:
        if len(word) > LONG_WORD:
            sentence = sentence.replace(word, word[: LONG_WORD - 1] + "…")
    return sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1] + "…"


def explain_misuse(error: TyperException) -> str:
    """Says what was not understood and where to look. Empty if help was printed instead."""
    what = error.format_message().rstrip(".")
    wrong = error.__cause__
    if isinstance(error, typer.BadParameter) and error.param is not None and wrong is not None:
        from pydantic import ValidationError  # noqa: PLC0415 loaded by now, and --help needs none of it

        from gristmill.settings import explain_reason  # noqa: PLC0415 as above

        if isinstance(wrong, ValidationError):
            name = error.param.get_error_hint().strip("'")
            what = f"{name} is wrong: {explain_reason(wrong.errors()[0])}"
    what = what.rstrip(".")
    context = getattr(error, "ctx", None)
    if what.endswith("?"):  # Did you mean …?
        return f"{what} See {context.command_path} --help." if context else what
    return what and (f"{what}; see {context.command_path} --help." if context else f"{what}.")


def _refuse_other_encodings(words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = shorten(os.fsencode(word).decode(errors="backslashreplace"), LONG_WORD)
            raise Misused(f"The argument “{shown}” is not UTF-8: write it in that encoding.") from None


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata  # noqa: PLC0415 a sixth of the time that --help takes

        typer.echo(f"gristmill {metadata.version('gristmill')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Grinds documents into knowledge, and knowledge into work, on one PostgreSQL of your own."""


def _stand_in() -> None:
    """Stands for a command that is only listed."""


def _report_unexpected(error: Exception, *, as_json: bool) -> int:
    from gristmill.settings import load  # noqa: PLC0415 costs 0.2 s, and --help needs none of it
    from gristmill.telemetry import shorten_text  # noqa: PLC0415 as above

    what = shorten(f"{type(error).__name__}: {error}", LONGEST)
    fail(f"Something unexpected went wrong ({what}): {UNEXPECTED}.", as_json=as_json)
    try:
        level = load().log.level
    except GristmillError:
        return 1
    if level == "debug":
        sys.stderr.write(shorten_text("".join(traceback.format_exception(error))))
    return 1
