"""Divides a file of calendars into its events, line by line: it looks into none of them, so that no file takes long."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from gristmill.errors import Permanent

EDGE = re.compile(rb"(BEGIN|END):\s*([\w-]+)\s*", re.IGNORECASE)
FOLD = re.compile(rb"\r?\n[ \t]")  # a line that goes on in the next one
UID = re.compile(rb"^UID(?:;[^:\r\n]*)?:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
ZONE_NAME = re.compile(rb"^TZID(?:;[^:\r\n]*)?:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
USED_ZONE = re.compile(rb"TZID=\"?([^\":;,\r\n]+)", re.IGNORECASE)
LONGEST_UID = 300  # characters
LARGEST_ZONES = 100_000  # bytes of the time zones that each event gets: only an attack has more
HEAD = b"BEGIN:VCALENDAR\r\nPRODID:-//gristmill//EN\r\nVERSION:2.0\r\n"
FOOT = b"END:VCALENDAR\r\n"


@dataclass
class _Found:
    """Components as they stand in the file."""

    events: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])  # by UID
    zones: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # by name


def divide_calendar(data: bytes) -> dict[str, bytes]:
    """The events of a file by their UID, each as a calendar of its own: exceptions of a series stay with it.

    A file may hold several calendars.
    """
    found = _find_components(data.removeprefix(b"\xef\xbb\xbf").splitlines())
    return {uid: _write_calendar(events, found.zones) for uid, events in found.events.items()}


def _find_components(lines: Sequence[bytes]) -> _Found:
    found, open_ = _Found(), list[bytes]()  # the names of the components around a line
    kept, seen = list[bytes](), False
    for line in lines:
        edge = EDGE.fullmatch(line)
        if edge is None:
            if len(open_) >= 2:
                kept.append(line)
            elif not open_ and line.strip():
                raise Permanent("It is no calendar.")
            continue
        name = edge[2].upper()
        if edge[1].upper() == b"BEGIN":
            if (not open_) != (name == b"VCALENDAR"):
                raise Permanent("It is no calendar, or one within another.")
            seen = True
            open_.append(name)
        elif not open_ or open_[-1] != name:
            raise Permanent(f"It is no calendar: {name.decode(errors='replace')[:40]} ends where it has not begun.")
        if len(open_) >= 2:
            kept.append(line)
        if edge[1].upper() == b"END":
            open_.pop()
            if len(open_) == 1:
                _keep(found, name, b"\r\n".join(kept) + b"\r\n")
                kept = []
    if open_ or not seen:
        raise Permanent("It is no calendar, or was cut off.")
    return found


def _keep(found: _Found, name: bytes, component: bytes) -> None:
    if name == b"VEVENT":
        found.events.setdefault(_find_uid(component), []).append(component)
    elif name == b"VTIMEZONE" and (zone := ZONE_NAME.search(FOLD.sub(b"", component))):
        found.zones[zone[1].strip()] = component


def _find_uid(event: bytes) -> str:
    said = UID.search(FOLD.sub(b"", event))
    uid = said[1].decode("utf-8", "backslashreplace").strip() if said else ""
    return uid if uid and len(uid) <= LONGEST_UID else sha256(event).hexdigest()[:40]


def _write_calendar(events: Sequence[bytes], zones: dict[bytes, bytes]) -> bytes:
    folded = [FOLD.sub(b"", event) for event in events] if zones else []
    used = {found[1].strip() for event in folded for found in USED_ZONE.finditer(event)}
    wanted = [zone for name, zone in zones.items() if name in used]
    if sum(map(len, wanted)) > LARGEST_ZONES:
        wanted = []
    return b"".join((HEAD, *wanted, *events, FOOT))
