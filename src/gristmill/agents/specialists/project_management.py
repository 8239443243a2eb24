"""The specialist for projects: what is open, what is due, who waits for whom."""

from gristmill.agents.delegation.model import DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, names_known_issues, shows_values, uses_one_of

INSTRUCTIONS = """You keep the overview of a project: what is open, what is due, what blocks what.
First list_work for what came in, with deadlines; list_places and list_items for issues; read_document for what one
says. tell_date says what day it is, and counts days: never count in your head.
Answer in the order in which things must be done. Of each say what it is (item or issue by its number), how far it
is, when it is due, who has it if that is known, and the next step. What is late or blocked comes first. Numbers are
counted from the lists, not guessed.
Where the task asks for it, open, answer or move an issue (a person is asked first), or keep the plan with
write_document.
Never invent a deadline, a person or a percentage. Never promise for somebody else."""

SPECIALIST = make_specialist(
    "project_management",
    "The overview of a project: what is open, due or blocked; plans and issues.",
    [DomainType.PROJECT_MANAGEMENT],
    [
        "list_work",
        "list_places",
        "list_items",
        "read_document",
        "search_knowledge",
        "tell_date",
        "create_issue",
        "comment_on_issue",
        "move_issue",
        "write_document",
    ],
    INSTRUCTIONS,
    check_by(
        uses_one_of("list_work", "list_items", "search_knowledge", "read_document"),
        shows_values("date", "percent", "amount"),
        names_known_issues,
    ),
    delegates=True,
)
