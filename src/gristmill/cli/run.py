"""`gristmill run`: let agents do something, follow it, answer what it asks, look at it, and stop it."""

import asyncio
from contextlib import aclosing
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text
from typer.core import TyperGroup

from gristmill.agents import (
    Question,
    Run,
    RunNews,
    RunView,
    RunWish,
    answer_question,
    begin_run,
    draw_run,
    end_run,
    has_run_worker,
    load_run,
    load_view,
    nest_steps,
    watch_run,
)
from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.following import RunTeller, ask_person, can_ask, describe_time, draw_step
from gristmill.cli.grinding import hint_at_workers
from gristmill.cli.output import Json, Misused, emit, err, make_facts, make_table, out, say_json, shorten, warn
from gristmill.cli.runs import describe_run, describe_state
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, session
from gristmill.errors import Refused
from gristmill.ids import QuestionId, RunId
from gristmill.wording import format_bytes, format_count

SHOWN_STEPS = 60  # the last ones
Id = Annotated[int, typer.Argument(metavar="RUN", min=1, help="Its number.")]


class RunGroup(TyperGroup):
    """`gristmill run "…"` starts a run: a word that is no command is a request."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(no_args_is_help=True, cls=RunGroup)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="run", help=text)


# --- start and follow


@app.command("start")
def start(
    request: Annotated[str, typer.Argument(help="What shall be done.")],
    client: Client = None,
    project: Project = None,
    repository: Annotated[str | None, typer.Option(help="The git source to work on.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--background", help="Follow it, or leave it to the background.")] = True,
    json: Json = False,
) -> None:
    """Let agents do something, and follow it; `gristmill run "…"` is the same. Ctrl-C leaves it running.

    Example: gristmill run "Sum up the letters of Harrow & Tate" --client acme
    """
    if not request.strip():
        raise Misused('Say what shall be done, for example gristmill run "sum up the letters of this week".')
    scope = scope_of(client, project)
    if repository == "":
        raise Misused("The name is empty: name the repository, or leave the option out.")
    wanted = RunWish(request, name_user(), scope, repository=repository, foreground=wait)
    begun: Run = remote().start_elsewhere(wanted) if is_elsewhere() else asyncio.run(_start(wanted))
    if not wait:
        emit(json, describe_run(begun), lambda: f"Run {begun.id} is on its way: gristmill run watch {begun.id}")
        return
    if not json:
        err.print(Text(f"Run {begun.id} is on its way. Ctrl-C leaves it running.", style="dim"))
    _follow(begun.id, json)


@app.command("watch")
def watch(run: Id, json: Json = False) -> None:
    """Follow a run until it is over, and answer what it asks. Ctrl-C leaves it running.

    Example: gristmill run watch 7
    """
    _follow(RunId(run), json)


def _follow(run: RunId, as_json: bool) -> None:
    """Until it is over; rounds in between end where a person is asked."""
    teller, last_id = RunTeller(quiet=as_json), None
    try:
        while True:
            with teller:
                news = _follow_round(run, last_id, teller)
            if isinstance(news, Run):
                _leave_queued(news, as_json)
                return
            if news.run.has_ended:
                break
            last_id = news.id
            if as_json or not can_ask():
                _leave_waiting(news, as_json)
            for question in reversed(news.questions):
                _give_answer(question, *ask_person(question))
    except KeyboardInterrupt:
        back = f"gristmill run watch {run} comes back, gristmill run stop {run} ends it"
        err.print(Text(f"Run {run} goes on without you: {back}.", style="yellow"), soft_wrap=True)
        raise
    _tell_end(news.run, as_json)


def _follow_round(run: RunId, last_id: str | None, teller: RunTeller) -> RunNews | Run:
    """The news with which it ended, or with which nothing goes on without a person; the run, if no worker is there."""
    if is_elsewhere():
        return remote().follow_elsewhere(run, last_id, teller.tell)
    return asyncio.run(_follow_here(run, last_id, teller))


async def _follow_here(run: RunId, last_id: str | None, teller: RunTeller) -> RunNews | Run:
    async with session(quiet=teller.status is not None) as at:
        async with at.db.reading() as tx:
            found = await load_run(tx, run)
            # the run of an item is carried by the task of its item, in another queue
            if found.state == "queued" and found.item is None and not await has_run_worker(tx):
                return found
        if not found.has_ended:
            await hint_at_workers(at)
        async with aclosing(watch_run(at.db.reading, run, last_id)) as all_news:
            async for news in all_news:
                teller.tell(news)
                if news.has_paused:
                    return news
    raise Refused(f"Run {run} was removed meanwhile.")


def _leave_queued(run: Run, as_json: bool) -> None:
    """No worker is there: nobody waits in silence for something that may never begin."""
    way = f"run {run.id} waits until gristmill up or gristmill worker runs; gristmill run watch {run.id} comes back"
    sentence = f"No worker is running: {way}."
    if as_json:
        say_json({**describe_run(run), "note": sentence})
    else:
        warn(sentence)


def _leave_waiting(news: RunNews, as_json: bool) -> None:
    """Nobody is there to answer: say what is asked, and how it is answered."""
    if as_json:
        say_json({**describe_run(news.run), "questions": [_describe_question(one) for one in news.questions]})
        raise typer.Exit(1)
    for one in reversed(news.questions):
        choices = "|".join(one.choices) or "--text …"
        err.print(f"Question {one.id}: {one.sentence}", soft_wrap=True)
        err.print(f"  gristmill run answer {one.run} --question {one.id} {choices}", soft_wrap=True)
    raise Refused(f"Run {news.run.id} waits for a person: answer, and gristmill run watch {news.run.id} comes back.")


def _tell_end(run: Run, as_json: bool) -> None:
    if as_json:
        say_json(describe_run(run))
    elif run.report is not None:
        out.print(Text(run.report), soft_wrap=True)
    if run.state == "failed" and not as_json:
        raise Refused(run.error or f"Run {run.id} failed.")
    if run.state == "stopped" and not as_json:
        raise Refused(f"Run {run.id} was stopped by {run.stopped_by}.")
    if run.state != "completed":
        raise typer.Exit(1)


# --- look, answer, stop


@app.command("show")
def show(
    run: Id,
    all_: Annotated[bool, typer.Option("--all", help="All steps, not the last ones alone.")] = False,
    json: Json = False,
) -> None:
    """One run: its graph, its steps, its effects, its questions, its tokens and its time.

    Example: gristmill run show 7
    """
    found: RunView = remote().fetch_run(run) if is_elsewhere() else asyncio.run(_load(RunId(run)))
    emit(json, _describe(found), lambda: _draw(found, all_))


@app.command("answer")
def answer(
    run: Id,
    choice: Annotated[str | None, typer.Argument(help="One of the choices, for example approve.")] = None,
    question: Annotated[int | None, typer.Option(min=1, help="Which question, where several wait.")] = None,
    text: Annotated[str, typer.Option(help="The answer in words, or a word on the choice.")] = "",
    json: Json = False,
) -> None:
    """Answer what a run asks. Without an answer, the terminal asks you each question. After the last, the run goes on.

    Example: gristmill run answer 7 approve
    """
    found: RunView = remote().fetch_run(run) if is_elsewhere() else asyncio.run(_load(RunId(run)))
    waiting = [one for one in reversed(found.questions) if one.state == "open"]
    if question is not None:
        waiting = [one for one in waiting if one.id == question]
    if not waiting:
        which = f"Question {question} of run {run}" if question is not None else f"Run {run}"
        raise Refused(f"{which} waits for no answer.")
    if choice is None and not text:
        if json or not can_ask():
            raise Misused("Say the answer: one of its choices, or --text.")
        for one in waiting:
            _give_answer(one, *ask_person(one))
        return
    if len(waiting) > 1:
        numbers = ", ".join(str(one.id) for one in waiting)
        raise Misused(f"Run {run} asks {len(waiting)} questions: say which one with --question ({numbers}).")
    given = _send_answer(waiting[0], choice, text)
    emit(json, _describe_question(given), lambda: f"Question {given.id} of run {given.run} is answered.")


def _give_answer(question: Question, choice: str | None, words: str) -> None:
    """Answer; a question that somebody else has answered meanwhile needs no answer of ours."""
    try:
        _send_answer(question, choice, words)
        told = Text(f"Question {question.id} is answered.", style="dim")
    except Refused as refused:
        told = Text(str(refused), style="yellow")
    err.print(told, soft_wrap=True)


def _send_answer(question: Question, choice: str | None, words: str) -> Question:
    if is_elsewhere():
        return remote().answer_elsewhere(question.id, choice, words)
    return asyncio.run(_answer(question.id, choice, words))


@app.command("stop")
def stop(run: Id, json: Json = False) -> None:
    """End a run: it begins nothing more. What it has done stays done.

    Example: gristmill run stop 7
    """
    found: Run = remote().stop_elsewhere(run) if is_elsewhere() else asyncio.run(_stop(RunId(run)))
    ended = f"Run {run} is stopped: it begins nothing more."
    emit(
        json,
        describe_run(found),
        lambda: ended if found.state == "stopped" else f"Run {run} was {found.state} already.",
    )


# --- on this machine


async def _start(wanted: RunWish) -> Run:
    async with session() as at, at.db.transaction() as tx:
        return await begin_run(tx, wanted)


async def _load(id_: RunId) -> RunView:
    async with session() as at, at.db.reading() as tx:
        return await load_view(tx, id_)


async def _answer(id_: QuestionId, choice: str | None, words: str) -> Question:
    async with session() as at, at.db.transaction() as tx:
        return await answer_question(tx, id_, choice=choice, answer=words, by=name_user())


async def _stop(id_: RunId) -> Run:
    async with session() as at, at.db.transaction() as tx:
        await end_run(tx, id_, name_user())
        return await load_run(tx, id_)


# --- how it is shown


def _describe(found: RunView) -> dict[str, Any]:
    effects = [{name: value for name, value in vars(one).items() if name != "hash"} for one in found.effects]
    questions = [_describe_question(one) for one in found.questions]
    known = {"steps": found.steps, "effects": effects, "questions": questions, "checkpoints": found.size}
    return describe_run(found.run) | known


def _describe_question(one: Question) -> dict[str, Any]:
    kept = {name: value for name, value in vars(one).items() if name not in ("scope", "key", "withdrawn_at")}
    return {"state": one.state, **kept}


def _draw(found: RunView, all_: bool) -> RenderableType:
    run = found.run
    asked_by = run.asked_by or f"the {run.item_type} that it is done for"
    calls = format_count(run.calls, "call")
    tokens = f"{run.tokens_in:,} read, {run.tokens_out:,} written, in {calls} of a model" if run.calls else None
    waiting = [f"{one.id} {one.sentence}" for one in reversed(found.questions) if one.state == "open"]
    facts = make_facts(
        [
            ("request", shorten(run.request, 400)),
            ("state", describe_state(run).replace("_", " ")),
            ("asked by", f"{asked_by}, for {format_scope(run.client, run.project)}"),
            ("task", run.task),
            ("repository", run.repository),
            ("workspace on", run.host),
            ("begun", run.started_at),
            ("over", run.finished_at),
            ("took", describe_time(run)),
            ("tokens", tokens),
            ("checkpoints", f"{found.size.checkpoints:,}, {format_bytes(found.size.bytes)}"),
            ("graph", _draw_graph(found)),
            ("asks", "\n".join(waiting)),
            ("error", run.error),
            ("stopped by", run.stopped_by),
        ]
    )
    parts: list[RenderableType] = [facts]
    if found.steps:
        parts += [Text("\nSteps", style="bold"), *_draw_steps(found, all_)]
    if found.effects:
        rows = [(one.id, one.state, one.tool, one.approved_by, one.summary) for one in found.effects]
        columns = (">effect", "state", "tool", "approved by", "what")
        parts += [Text("\nEffects", style="bold"), make_table(columns, rows, empty="")]
    if run.report:
        parts += [Text("\nReport", style="bold"), Text(run.report)]
    return Group(*parts)


def _draw_graph(found: RunView) -> str:
    """The nodes that were visited, in the order of the graph."""
    picture = draw_run(found.run, found.steps)
    if picture is None:
        return ""
    signs = {"done": "✓", "failed": "✗", "waiting": "?", "running": "…", "left": "–"}
    nodes = [
        f"{node.name} {signs[node.state]}{f' {node.visits}×' if node.visits > 1 else ''}" for node in picture.visited
    ]
    return f"{picture.name}: {' → '.join(nodes)}"


def _draw_steps(found: RunView, all_: bool) -> list[RenderableType]:
    shown = list(nest_steps(found.run, found.steps))
    left = 0 if all_ else max(0, len(shown) - SHOWN_STEPS)
    lines: list[RenderableType] = [Text(f"… {format_count(left, 'step')} before: --all", style="dim")] if left else []
    return lines + [draw_step(twig.step, depth) for twig, depth in shown[left:]]
