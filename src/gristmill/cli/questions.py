"""`gristmill question`: what agents ask a person, and the answers."""

from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gristmill.agents import Question, answer_question, list_facts, list_questions, load_question
from gristmill.cli.output import Json, emit, make_facts, make_table
from gristmill.cli.session import name_user, run, session
from gristmill.ids import QuestionId, RunId
from gristmill.wording import show_unseen

app = typer.Typer(no_args_is_help=True)
Id = Annotated[int, typer.Argument(metavar="QUESTION", min=1, help="Its number.")]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="question", help=text)


@app.command("ls")
def ls(
    of_run: Annotated[int | None, typer.Option("--run", min=1, help="Only of this run.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that need no answer any more.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 100,
    json: Json = False,
) -> None:
    """Questions that wait for a person, the newest first.

    Example: gristmill question ls
    """
    found = run(_load_all(of_run, all_, limit))
    rows = [(one.id, one.run, one.state, one.kind, one.asked_at, one.sentence) for one in found]
    empty = "No question waits for a person." if not all_ else "Nobody was asked anything yet."
    columns = (">question", ">run", "state", "kind", "asked", "what")
    emit(json, [_describe(one) for one in found], lambda: make_table(columns, rows, empty=empty))


@app.command("show")
def show(question: Id, json: Json = False) -> None:
    """One question: what would be done, why it is asked, and who said the values.

    Example: gristmill question show 7
    """
    found = run(_load(QuestionId(question)))
    emit(json, _describe(found), lambda: _show(found))


@app.command("answer")
def answer(
    question: Id,
    choice: Annotated[str | None, typer.Argument(help="One of its choices, for example approve or refuse.")] = None,
    text: Annotated[str, typer.Option(help="The answer in words, or a word on the choice.")] = "",
    json: Json = False,
) -> None:
    """Answer a question; when none of its questions is open any more, the run goes on.

    Example: gristmill question answer 7 approve
    """
    found = run(_answer(QuestionId(question), choice, text))
    emit(json, _describe(found), lambda: f"Question {found.id} of run {found.run} is answered.")


async def _load_all(of_run: int | None, all_: bool, limit: int) -> list[Question]:
    async with session() as at, at.db.reading() as tx:
        which = RunId(of_run) if of_run is not None else None
        return await list_questions(tx, run=which, is_open=not all_, limit=limit)


async def _load(id_: QuestionId) -> Question:
    async with session() as at, at.db.reading() as tx:
        return await load_question(tx, id_)


async def _answer(id_: QuestionId, choice: str | None, text: str) -> Question:
    async with session() as at, at.db.transaction() as tx:
        return await answer_question(tx, id_, choice=choice, answer=text, by=name_user())


def _describe(one: Question) -> dict[str, Any]:
    return {"state": one.state, **vars(one)}


def _show(one: Question) -> RenderableType:
    return make_facts(
        [
            ("question", show_unseen(one.sentence)),
            ("run", one.run),
            ("state", one.state),
            ("about it", "\n".join(show_unseen(line) for line in list_facts(one))),
            ("answers", ", ".join(one.choices) or "in words: --text"),
            ("answered", f"{one.choice or one.answer} by {one.answered_by}" if one.answered_by else None),
        ]
    )
