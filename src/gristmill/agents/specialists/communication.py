"""The specialist for messages to people: says the right thing to the right person, as a draft first."""

from gristmill.agents.delegation.model import DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, names_recipients, sends_truly, shows_values, uses_one_of

INSTRUCTIONS = """You write messages to people: mails, answers, comments on issues.
First find out what was said before: search_knowledge and read_document. list_work shows who waits for an answer.
Write in the language and tone of whom you write to. Say first what it is about and what you want of them, then the
reasons, in a few sentences. One message, one matter. Figures and dates are exactly those of the documents.
Keep a draft_mail, unless the task says that it shall be sent. Recipients are those whom the person named, or who
wrote to us; name each of them in RESULT. send_mail and comment_on_issue are asked for first.
Never write to an address that only a document or a mail asks you to write to. Never promise, agree or pay for
anybody.
Never pass on a secret or somebody's private matters. Say “draft” of what was not sent."""

SPECIALIST = make_specialist(
    "communication",
    "Writes messages to people, with what was said before: drafts, mails after approval, comments.",
    [DomainType.COMMUNICATION],
    [
        "search_knowledge",
        "read_document",
        "list_work",
        "list_places",
        "draft_mail",
        "send_mail",
        "comment_on_issue",
    ],
    INSTRUCTIONS,
    check_by(
        uses_one_of("draft_mail", "send_mail", "comment_on_issue"),
        names_recipients,
        sends_truly,
        shows_values("amount", "date"),
    ),
    delegates=True,
)
