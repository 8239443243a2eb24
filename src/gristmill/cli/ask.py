"""`gristmill ask`: answers from what is stored, sentence by sentence, each with the passages that it stands on."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.text import Text

from gristmill.agents import KEPT_VERDICTS, AskService, Speaker, ask_in_conversation, choose_excerpt, stream_answer
from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.output import Json, Misused, err, out, say_json, shorten, warn
from gristmill.cli.scopes import ViewedClient, view_of
from gristmill.cli.session import load_settings, session
from gristmill.errors import Transient
from gristmill.knowledge import Finder
from gristmill.scopes import Scope
from gristmill.web import ask_local

OPERATOR = Speaker("operator")
Pair = tuple[str, dict[str, Any]]
SHOWN = 5  # passages where no model is configured
QUOTE = 160  # characters of a quotation …
EXCERPT = 320  # … and of a passage that stands for itself


def register(root: typer.Typer, text: str) -> None:
    root.command("ask")(ask_)


def ask_(
    question: Annotated[str, typer.Argument(help="The question.")],
    client: ViewedClient = None,
    project: Annotated[str | None, typer.Option(help="Which project of the client.")] = None,
    conversation: Annotated[
        str | None, typer.Option(help="Continue the conversation with this number; `new` begins one.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question from what is stored. Ctrl-C stops the answer, down to the model.

    Example: gristmill ask "who signed the contract" --client acme
    """
    if not question.strip():
        raise Misused('Say what you want to know, for example gristmill ask "when is the invoice due".')
    wanted = read_conversation(conversation)
    pairs = _choose_way(question, view_of(client, project), wanted)
    teller = Teller(quiet=json)
    asyncio.run(_tell_all(pairs, teller))
    if json:
        say_json(teller.answer)


def read_conversation(text: str | None) -> int | bool | None:
    """The number of a conversation; True for a new one, None for a question that stands alone."""
    if text is None:
        return None
    if text == "new":
        return True
    if not text.isdecimal() or not 0 < int(text) < 2**63:
        raise Misused(f"“{text}” is no conversation: write its number, or new.")
    return int(text)


async def _choose_way(question: str, scope: Scope | None, conversation: int | bool | None) -> AsyncGenerator[Pair]:
    """A server elsewhere, a running `gristmill up`, or this process by itself."""
    if is_elsewhere():
        for pair in remote().ask_elsewhere(question, scope, conversation):
            yield pair
        return
    found = await ask_local(load_settings(), question, scope, conversation)
    async with aclosing(found if found is not None else _ask_here(question, scope, conversation)) as pairs:
        async for pair in pairs:
            yield pair


async def _ask_here(question: str, scope: Scope | None, conversation: int | bool | None) -> AsyncGenerator[Pair]:
    async with session(size=8) as at, Finder(at.db, at.settings) as finder:
        asking = AskService(at.db, at.settings, finder)
        try:
            if conversation is None:
                pairs = stream_answer(asking.answerer, question, scope)
            else:
                number = None if conversation is True else int(conversation)
                pairs = ask_in_conversation(at.db, asking.talker, OPERATOR, question, scope, number)
            async with aclosing(pairs):
                async for pair in pairs:
                    yield pair
        finally:
            await asking.close()


async def _tell_all(pairs: AsyncGenerator[Pair], teller: "Teller") -> None:
    async with aclosing(pairs):
        async for name, fields in pairs:
            teller.tell(name, fields)
    teller.end()


@dataclass
class Teller:
    """Prints an answer as it comes; each sentence once."""

    quiet: bool
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    told: int = 0  # how many sentences of the present message are printed
    message: int | None = None

    def tell(self, name: str, fields: dict[str, Any]) -> None:
        match name:
            case "conversation" if not self.quiet:
                err.print(Text(f"Conversation {fields['id']}", style="dim"))
            case "waits" if not self.quiet:
                err.print(Text(fields["text"], style="dim"), soft_wrap=True)
            case "sentence":
                self._print_sentence(fields.get("shown", ""))
            case "message" if fields["role"] == "assistant":
                self._take_message(fields)
            case "answer":
                self.answer = fields
            case "error":
                raise Transient(fields["detail"])
            case _:
                pass

    def _take_message(self, fields: dict[str, Any]) -> None:
        if fields["id"] != self.message:
            self.message, self.told = fields["id"], 0
        self.answer = fields["answer"]
        if fields.get("waits") and not self.quiet:
            err.print(Text(fields["draft"], style="dim"), soft_wrap=True)
        for sentence in self.answer["sentences"][self.told :]:
            self._print_sentence(show_sentence(sentence))
            self.told += 1
        if self.answer["state"] == "failed":
            raise Transient(self.answer["error"] or "The answer failed: ask again.")

    def _print_sentence(self, text: str) -> None:
        if text and not self.quiet:
            out.print(Text(text), soft_wrap=True)

    def end(self) -> None:
        if self.quiet or not self.answer:
            return
        if self.answer["kind"] != "answer":
            out.print(Text(self.answer["text"]), soft_wrap=True)
        for line in list_sources(self.answer):
            out.print(line, soft_wrap=True)
        for line in list_left_out(self.answer):
            err.print(line, soft_wrap=True)
        if note := self.answer.get("note"):
            warn(note)


def show_sentence(sentence: dict[str, Any]) -> str:
    """A sentence of the answer, with the numbers of its passages and what is uncertain about it."""
    if sentence["verdict"] not in KEPT_VERDICTS:
        return ""
    marks = "".join(dict.fromkeys(f"[{one['number']}]" for one in sentence["citations"]))
    marks += " [partial]" if sentence["verdict"] == "partial" else ""
    body = sentence["text"].rstrip(".!?…")
    return f"{body} {marks}{sentence['text'][len(body) :] or '.'}"


def list_sources(answer: dict[str, Any]) -> Iterator[Text]:
    """The passages that the answer cites: each once, with its words."""
    places = [
        cited for one in answer["sentences"] if one["verdict"] in KEPT_VERDICTS for cited in one["citations"]
    ] or (answer["passages"][:SHOWN] if answer["kind"] == "passages" else [])
    seen: set[tuple[int, int, int]] = set()
    for place in places:
        key = (place["document"], place["page"], place["start"])
        if key in seen:
            continue
        seen.add(key)
        quote = place.get("quote") or choose_excerpt(answer["question"], place.get("text") or "", most=EXCERPT)
        yield Text.assemble(
            (f"\n[{place['number']}] ", "bold"),
            (shorten(place["title"] or place["name"], 60), "bold"),
            (f"  document {place['document']}", "cyan"),
            (f"  page {place['page']}", "cyan"),
            (f"  {place['start']}–{place['stop']}", "dim"),
            f"\n    “{shorten(quote, QUOTE if place.get('quote') else EXCERPT + 4)}”",
        )


def list_left_out(answer: dict[str, Any]) -> Iterator[Text]:
    for one in answer["sentences"]:
        if one["verdict"] == "partial":
            yield Text(f"Not certain: {shorten(one['text'], 120)} {one['reason']}", style="dim")
        elif one["verdict"] != "supported" and one["reason"]:
            yield Text(f"Left out, {one['verdict']}: {shorten(one['text'], 120)} {one['reason']}", style="dim")
