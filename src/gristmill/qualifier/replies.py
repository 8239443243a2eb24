"""Drafts of replies without an LLM, in the languages of our users, and what no draft may promise."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gristmill.models import About, FoundDate, read_facts
from gristmill.qualifier.model import END_OF_DAY

LONGEST_WISH = 300  # characters of a request that a draft repeats
# A line with these words says that a day is over, and promises nothing.
OVER = re.compile(
    r"\b(?:over|past|passed|missed|late|expired|elapsed|vorbei|verstrichen|abgelaufen|versäumt|überschritten|verspät\w*|"
    r"uplynul\w*|vypršel\w*|prošl\w*|zmeškal\w*|opožd\w*|istek\w*|proš(?:ao|la|lo)|propu[sš]\w*|kasni\w*)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Phrases:
    """What a draft says in one language."""

    greeting: str
    stranger: str
    thanks: str
    asked: str
    over: str  # of a request whose day has passed
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
        "(this day is over)",
        "We will come back to you by {date}.",
        "We will come back to you.",
        "Kind regards",
        "%d/%m/%Y",
    ),
    "de": Phrases(
        "Guten Tag {name},",
        "Guten Tag,",
        "vielen Dank für Ihre Nachricht vom {date}.",
        "Wir haben notiert, worum Sie bitten:",
        "(dieser Tag ist vorbei)",
        "Wir melden uns bis zum {date} bei Ihnen.",
        "Wir melden uns bei Ihnen.",
        "Mit freundlichen Grüßen",
        "%d.%m.%Y",
    ),
    "cs": Phrases(
        "Dobrý den, {name},",
        "Dobrý den,",
        "děkujeme za Vaši zprávu ze dne {date}.",
        "Zaznamenali jsme, o co žádáte:",
        "(tento termín uplynul)",
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
        "(taj je rok istekao)",
        "Javit ćemo Vam se do {date}",
        "Javit ćemo Vam se.",
        "Srdačan pozdrav",
        "%d. %m. %Y.",
    ),
}


def write_reply(
    language: str,
    name: str,
    written_at: datetime,
    wishes: Sequence[str],
    deadline: datetime | None,
    now: datetime,
) -> str:
    """Thanks, repeats what is asked, and promises an answer; English for any other language.

    A deadline that is over is not promised, and a request that names one says so.
    """
    say = PHRASES.get(language, PHRASES["en"])
    lines = [say.greeting.format(name=name) if name else say.stranger, ""]
    lines.append(say.thanks.format(date=written_at.strftime(say.date)))
    if wishes:
        lines += ["", say.asked, *(_repeat(one, written_at, now, say) for one in wishes)]
    promise = say.later
    if deadline is not None and deadline > now:
        promise = say.deadline.format(date=deadline.strftime(say.date))
    lines += ["", promise, "", say.regards]
    return "\n".join(lines)


def _repeat(wish: str, written_at: datetime, now: datetime, say: Phrases) -> str:
    line = f"- {' '.join(wish.split())[:LONGEST_WISH]}"
    return f"{line} {say.over}" if _find_over(wish, written_at, now) else line


def promises_past(reply: str, written_at: datetime, deadline: datetime | None, now: datetime) -> bool:
    """Whether a draft names a deadline that is over as if it were to come.

    A day without a year is counted from now; if it is that of the item's own deadline, it means that one.
    """
    found = _find_over(reply, now, now)
    if deadline is not None:
        found += [one for one in _find_over(reply, written_at, now) if one.day == deadline.date()]
    return any(not OVER.search(_find_line(reply, one.evidence.start)) for one in found)


def _find_over(text: str, counted_from: datetime, now: datetime) -> list[FoundDate]:
    """The deadlines of a text that are over."""
    dates = read_facts(text, About(counted_from, type="email")).dates
    return [
        one
        for one in dates
        if one.is_deadline and datetime.combine(one.day, one.clock or END_OF_DAY, counted_from.tzinfo) <= now
    ]


def _find_line(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]
