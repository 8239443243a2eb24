"""What the status and the headers of an answer mean for us."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from gristmill.errors import Overloaded, Permanent, Transient

PAUSE = timedelta(minutes=1)  # for a host that is busy and names no time
LONGEST_PAUSE = timedelta(days=1)
BUSY = (429, 503)
PASSING = (408, 421, 425)  # of the 4xx: the same request may succeed later
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class NotThere(Permanent):
    """The host answered that it has no such page for us; `status` is 404, 410, 401, 403 or another 4xx."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def check_status(status: int, headers: Mapping[str, str], *, whom: str) -> None:
    """Raise the error of a status that is neither success, nor a redirect, nor “not modified”."""
    if status in BUSY:
        wait = read_retry_after(headers.get("Retry-After"), headers.get("Date"))
        raise Overloaded(
            f"{whom} is busy (status {status}) and asks us to come back in {wait.total_seconds():.0f} s.", wait
        )
    if status >= 500 or status in PASSING:
        raise Transient(f"{whom} failed with status {status}.")
    if status >= 400:
        raise NotThere(f"{whom} answered with status {status}{_explain(status)}.", status)
    if not 200 <= status < 300 and status != 304:
        raise Permanent(f"{whom} answered with status {status}, which is no page.")


def _explain(status: int) -> str:
    match status:
        case 401 | 403 | 407:
            return ": we may not read it"
        case 404 | 410:
            return ": there is no such page"
        case _:
            return ""


def read_retry_after(value: str | None, date: str | None) -> timedelta:
    """Seconds or a date, between one second and a day; the host's own clock says what the date means."""
    if value is None:
        return PAUSE
    if re.fullmatch(r"\s*\d{1,9}\s*", value):
        wait = timedelta(seconds=int(value))
    else:
        until, now = read_date(value), read_date(date)
        wait = until - now if until and now else PAUSE
    return min(max(wait, timedelta(seconds=1)), LONGEST_PAUSE)


def read_date(value: str | None) -> datetime | None:
    """A date as it stands in a header; None if there is none, or none that can be read."""
    try:
        found = parsedate_to_datetime(value or "")
    except (ValueError, TypeError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_type(header: str | None, types: Sequence[str], *, whom: str) -> str:
    """The content type, if it is one of these; `image/*` and `*/*` stand for many."""
    kind = (header or "").partition(";")[0].strip().lower()
    group = kind.partition("/")[0] + "/*"
    if not {kind, group, "*/*"} & set(types):
        raise Permanent(f"{whom} is of the type “{kind[:60] or 'unknown'}”, which is not fetched (fetch.types).")
    return kind


def read_charset(header: str | None) -> str | None:
    found = CHARSET.search(header or "")
    return found[1].lower() if found else None
