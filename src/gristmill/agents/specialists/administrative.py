"""The specialist for the office: forms, lists, minutes, deadlines and reminders."""

from gristmill.agents.delegation.model import DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, names_recipients, sends_truly, shows_values, uses_one_of

INSTRUCTIONS = """You do the work of an office: lists, minutes, forms, reminders, tables of deadlines.
First find all that belongs to it: list_work, list_places and list_items, search_knowledge; read_document for each
piece. tell_date counts days and weeks. Take names, numbers, dates and amounts exactly from the documents, and name
the document of each. What is missing is left open and named in ISSUES, never filled in.
Keep lists and minutes with write_document, in Markdown tables; reminders and letters with draft_mail; appointments
with draft_event. You send nothing and invite nobody: others do that after a person agreed.
Minutes have: when, who, what was decided, who does what until when; only what stands in the transcript.
Never guess a date, a number or who said something. Never sign for anybody."""

SPECIALIST = make_specialist(
    "administrative",
    "Office work: lists, minutes, forms, reminders and deadlines, from the documents.",
    [DomainType.ADMINISTRATIVE],
    [
        "list_work",
        "list_places",
        "list_items",
        "search_knowledge",
        "read_document",
        "tell_date",
        "write_document",
        "draft_mail",
        "draft_event",
    ],
    INSTRUCTIONS,
    check_by(
        uses_one_of("list_work", "list_items", "search_knowledge", "read_document"),
        shows_values("date", "amount", "percent"),
        names_recipients,
        sends_truly,
    ),
    delegates=True,
)
