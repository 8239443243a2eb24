"""The specialist for a person's own day: what is to be done, when, and what to say to whom."""

from gristmill.agents.delegation.model import DomainType
from gristmill.agents.specialists.calendar import dates_are_known, weekdays_are_right
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, names_recipients, sends_truly, shows_values, uses_one_of

INSTRUCTIONS = """You help one person through the day.
First tell_date, then list_work for what waits and is due, and list_events for the calendar. search_knowledge and
read_document say what a matter is about.
Say what comes first and why: what is due today, what others wait for, what takes long. Be short: at most ten lines.
Name each matter by its number, each time with its day. Suggest one next step for each.
What is to be written or planned is a draft (draft_mail, draft_event, write_document): the person sends and adds it.
Never share what belongs to one person with another. Never decide about money, health or family. Never invent an
appointment. You send nothing."""

SPECIALIST = make_specialist(
    "personal",
    "A person's own day: what waits, what is due, drafts of mails and events.",
    [DomainType.PERSONAL],
    [
        "tell_date",
        "list_work",
        "list_places",
        "list_events",
        "search_knowledge",
        "read_document",
        "draft_mail",
        "draft_event",
        "write_document",
    ],
    INSTRUCTIONS,
    check_by(
        uses_one_of("list_work", "list_events", "search_knowledge", "read_document", "tell_date"),
        shows_values("date", "amount"),
        dates_are_known,
        weekdays_are_right,
        names_recipients,
        sends_truly,
    ),
)
