"""Makes a convention of a past decision: the sender and the words by which the next such item is recognised."""

import re
from collections.abc import Iterator
from email.utils import parseaddr

from gristmill.errors import Refused
from gristmill.models import About, TextFacts
from gristmill.qualifier.conventions.language import format_convention
from gristmill.qualifier.conventions.model import (
    AllOf,
    ChoiceTest,
    Condition,
    Consequence,
    ConventionRule,
    Fate,
    TextTest,
)

# Machines write from these addresses: all of their host is meant.
MACHINE = re.compile(
    r"^(?:no-?reply|do-?not-?reply|news(?:letter)?|notifications?|mailer|info|billing|invoices?)\b", re.I
)
FEWEST_LETTERS = 4  # of a word in a subject that says what the item is about
PREFIX = re.compile(r"^(?:\s*(?:re|fw|fwd|aw|wg|odp|vs)\s*:)+", re.IGNORECASE)
STABLE = re.compile(r"[^\W\d_]{3,}(?:\s+[^\W\d_]{3,})*")  # words without numbers: the next item has other numbers
FATES: dict[str, Fate] = {
    "info_only": "ignore",
    "handled": "handled",
    "now": "now",
    "later": "later",
    "consolidate": "now",
    "decompose": "now",
}


def suggest_convention(about: About, facts: TextFacts, route: str, fate: Fate | None = None) -> str:
    """A convention that fits this item and those like it, and says what was decided, or what is wished instead."""
    tests = list(_list_tests(about, facts))
    if not tests:
        raise Refused("Nothing of this item tells it from others: state the convention yourself.")
    condition: Condition = tests[0] if len(tests) == 1 else AllOf(tuple(tests))
    return format_convention(ConventionRule(condition, Consequence(fate or FATES[route])))


def _list_tests(about: About, facts: TextFacts) -> Iterator[Condition]:
    if about.type:
        yield ChoiceTest("type", (about.type,))
    address = parseaddr(about.sender)[1] or about.sender
    if address:
        name, _, host = address.rpartition("@")
        yield TextTest("sender", "is", (f"*@{host}" if name and MACHINE.match(name) else address,))
    if facts.noise:
        yield ChoiceTest("noise", (facts.noise[0].kind,))
    elif facts.payment:
        yield ChoiceTest("payment", ("due",))
    elif words := _find_words(about.subject):
        yield TextTest("subject", "has", (words,))


def _find_words(subject: str) -> str:
    """The longest piece of a subject without numbers."""
    found = STABLE.findall(PREFIX.sub("", subject))
    longest = max(found, key=len, default="")
    return " ".join(longest.split()) if len(longest) >= FEWEST_LETTERS else ""
