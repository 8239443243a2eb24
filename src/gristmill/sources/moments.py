"""Times as providers write them: read, and written so that their text sorts like they do."""

from datetime import UTC, datetime, timedelta


def read_moment(said: object) -> datetime | None:
    """`2026-03-02T10:00:00.000+0000`, `2026-03-02T10:00:00Z`; None for anything else."""
    try:
        found = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def write_moment(moment: datetime) -> str:
    """In UTC, to the millisecond."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def sort_moment(said: object) -> str:
    """A time of a provider as it is written here; empty for what is no time."""
    found = read_moment(said)
    return write_moment(found) if found else ""


def go_back(said: str, span: timedelta) -> str:
    """The moment that lies so long before another; the beginning stays the beginning."""
    found = read_moment(said) if said else None
    return write_moment(found - span) if found else ""


def show_moment(said: object) -> str:
    """A time for people: `2026-03-02 10:00 UTC`; what is no time stays as it is."""
    found = read_moment(said)
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if found else str(said or "")
