"""Drafts of replies without an LLM, in the languages of our users."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

LONGEST_WISH = 300  # characters of a request that a draft repeats


@dataclass(frozen=True)
class Phrases:
    """What a draft says in one language."""

    greeting: str
    stranger: str
    thanks: str
    asked: str
    deadline: str
    later: str
    regards: str
    date: str


PHRASES = {
    "en": Phrases(
        "Dear {name},",
        "Hello,",
        "Thank you for your message of {date}.",
        "We have noted what you ask for:",
        "We will come back to you before {date}.",
        "We will come back to you.",
        "Kind regards",
        "%d/%m/%Y",
    ),
    "de": Phrases(
        "Guten Tag {name},",
        "Guten Tag,",
        "vielen Dank für Ihre Nachricht vom {date}.",
        "Wir haben notiert, worum Sie bitten:",
        "Wir melden uns vor dem {date} bei Ihnen.",
        "Wir melden uns bei Ihnen.",
        "Mit freundlichen Grüßen",
        "%d.%m.%Y",
    ),
    "cs": Phrases(
        "Dobrý den, {name},",
        "Dobrý den,",
        "děkujeme za Vaši zprávu ze dne {date}.",
        "Zaznamenali jsme, o co žádáte:",
        "Ozveme se Vám do {date}.",
        "Ozveme se Vám.",
        "S pozdravem",
        "%d. %m. %Y",
    ),
    "hr": Phrases(
        "Poštovani {name},",
        "Poštovani,",
        "zahvaljujemo na Vašoj poruci od {date}",
        "Zabilježili smo što tražite:",
        "Javit ćemo Vam se do {date}",
        "Javit ćemo Vam se.",
        "Srdačan pozdrav",
        "%d. %m. %Y.",
    ),
}


def write_reply(
    language: str, name: str, written_at: datetime, wishes: Sequence[str], deadline: datetime | None
) -> str:
    """Thanks, repeats what is asked, and promises an answer; English for any other language."""
    say = PHRASES.get(language, PHRASES["en"])
    lines = [say.greeting.format(name=name) if name else say.stranger, ""]
    lines.append(say.thanks.format(date=written_at.strftime(say.date)))
    if wishes:
        lines += ["", say.asked, *(f"- {' '.join(one.split())[:LONGEST_WISH]}" for one in wishes)]
    lines += ["", say.deadline.format(date=deadline.strftime(say.date)) if deadline else say.later, "", say.regards]
    return "\n".join(lines)
