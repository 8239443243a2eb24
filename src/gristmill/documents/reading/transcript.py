"""Transcripts of meetings: who said what, from when to when; every paragraph carries its times."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import File, OpenFile, read_file
from gristmill.documents.reading.plain import decode, paginate, stem
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type
from gristmill.errors import Permanent

LONGEST = 600  # characters of a paragraph: shorter than a chunk, so that every chunk has times of its own
MOST_SPEAKERS = 100
CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d\d(?:[.,]\d{1,3})?"
TIMES = re.compile(rf"({CLOCK})\s*-+>\s*({CLOCK})[^\n]*")
VOICE = re.compile(r"<v(?:\.[^ >]*)?\s+([^>]{1,100})>")
TAG = re.compile(r"</?[a-z][^>]{0,100}>|<\d[\d:.]*>")
NAME = r"[^\W\d_][\w.'’() -]{0,59}"
SPOKEN = re.compile(rf"({NAME})\s*:\s+(\S.*)", re.DOTALL)
# a line of a plain text: `[00:01:02] Anna: …`, `00:01:02 Anna: …`, `Anna (00:01:02): …`, `Anna  0:03`, `Anna: …`
STAMPED = re.compile(rf"\[?\(?({CLOCK})\)?\]?\s*[-–]?\s*(?:({NAME})\s*:\s*)?(.*)")
NAMED = re.compile(rf"({NAME}?)\s*[\[(]?({CLOCK})[\])]?\s*:?\s*(.*)")
STAMP = re.compile(r"\[(\d+):(\d\d):(\d\d)(?:–(\d+):(\d\d):(\d\d))?\]")
LISTS = ("segments", "utterances", "monologues", "entries", "transcript", "transcripts", "items", "results", "phrases")
TEXTS = ("text", "transcript", "content", "value", "display", "sentence")
STARTS = ("start", "start_time", "startTime", "begin", "from", "offset", "timestamp", "ts", "startMs", "start_ms")
ENDS = ("end", "end_time", "endTime", "to", "endMs", "end_ms")
BROKEN_JSON = re.compile(r"""\{|[\[\s]*(?:[{"\]]|$)""")  # of a text that cannot be read as JSON: yet it was to be
NOTHING: list[dict[str, Any]] = []
SPEAKERS = ("speaker", "speaker_name", "speakerName", "speaker_label", "name", "user", "participant")


@dataclass(frozen=True)
class Cue:
    """Something that was said; times in seconds, if they are known."""

    text: str
    speaker: str = ""
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Transcript:
    """A meeting as it was written down."""

    cues: Sequence[Cue]
    pages: Sequence[str]

    @property
    def speakers(self) -> list[str]:
        return list(dict.fromkeys(cue.speaker for cue in self.cues if cue.speaker))[:MOST_SPEAKERS]

    @property
    def seconds(self) -> float | None:
        return max((cue.end or cue.start for cue in self.cues if cue.start is not None), default=None)


def inspect(path: File, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    found = transcripts.get(path)
    if len(found.pages) > limits.pages:
        raise refusals.too_long(len(found.pages), limits.pages)
    meta = tidy.meta({"speakers": found.speakers, "seconds": found.seconds})
    return Inspection("transcript", len(found.pages), stem(name), meta)


def read(path: File, type: Type, number: int, limits: Limits) -> PageText:
    pages = transcripts.get(path).pages
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def find_time_span(text: str) -> tuple[int, int] | None:
    """From when to when a passage of a transcript was said, in seconds; None if it bears no times."""
    found = [(_seconds(one[1:4]), _seconds(one[4:7]) if one[4] else None) for one in map(_groups, STAMP.finditer(text))]
    if not found:
        return None
    return found[0][0], max(stop if stop is not None else start for start, stop in found)


def _groups(found: re.Match[str]) -> list[str]:
    return [found[0], *(part or "" for part in found.groups())]


def _seconds(parts: Sequence[str]) -> int:
    hours, minutes, seconds = map(int, parts)
    return hours * 3600 + minutes * 60 + seconds


# --- reading


def parse_transcript(data: bytes) -> list[Cue]:
    """What was said; Permanent if nothing was, or nobody can read it."""
    cues = [cue for cue in parse(tidy.tidy(decode(data))) if cue.text]
    if not cues:
        raise refusals.empty()
    return cues


def _read(path: File) -> Transcript:
    cues = parse_transcript(read_file(path))
    return Transcript(cues, paginate("\n\n".join(_write(cue) for cue in join_cues(cues))))


transcripts = OpenFile(_read)


def looks_like_transcript(text: str) -> bool:
    """Subtitles of either kind; other forms are transcripts only where their source says so."""
    head = text.lstrip("\ufeff \n\r\t")
    return head.startswith("WEBVTT") or re.match(rf"\d{{1,6}}\s*\n{TIMES.pattern}", head) is not None


def parse(text: str) -> list[Cue]:
    """What was said, in whichever of the known forms."""
    head = text.lstrip("\ufeff \n\t")
    if head.startswith("WEBVTT"):
        return _parse_vtt(head)
    if head.startswith(("{", "[")) and (found := _parse_json(head)):
        return found
    if TIMES.search(head):
        return _parse_blocks(head)
    return _parse_lines(head)


def _parse_vtt(text: str) -> list[Cue]:
    import webvtt  # noqa: PLC0415 only the process that reads one needs it

    try:
        found = webvtt.from_string(text).captions
    except Exception:  # noqa: BLE001 whatever it stumbles over, the times can still be found
        return _parse_blocks(text)
    cues = [
        Cue(tidy.to_line(one.text), one.voice or "", float(one.start_in_seconds), float(one.end_in_seconds))
        for one in found
    ]
    return [cue if cue.speaker else _find_speaker(cue) for cue in cues] or _parse_blocks(text)


def _parse_blocks(text: str) -> list[Cue]:
    """Subtitles: a line of times, then lines of text up to the next blank line."""
    places = list(TIMES.finditer(text))
    cues: list[Cue] = []
    for n, found in enumerate(places):
        stop = places[n + 1].start() if n + 1 < len(places) else len(text)
        body = re.split(r"\n\s*\n", text[found.end() : stop].lstrip("\n"), maxsplit=1)[0]
        voice = VOICE.search(body)
        cue = Cue(tidy.to_line(TAG.sub("", VOICE.sub("", body))), "", read_clock(found[1]), read_clock(found[2]))
        cues.append(replace(cue, speaker=tidy.to_line(voice[1])) if voice else _find_speaker(cue))
    return cues


def _find_speaker(cue: Cue) -> Cue:
    found = SPOKEN.fullmatch(cue.text)
    return replace(cue, speaker=found[1].strip(), text=found[2]) if found else cue


def _parse_lines(text: str) -> list[Cue]:
    """A plain text with speakers; a line that begins with neither a time nor a name goes on with what was said."""
    cues: list[Cue] = []
    for line in filter(None, (one.strip() for one in text.splitlines())):
        if (found := STAMPED.fullmatch(line)) and (found[2] or found[3] or not cues):
            cues.append(Cue(found[3].strip(), (found[2] or "").strip(), read_clock(found[1])))
        elif (found := NAMED.fullmatch(line)) and found[1].strip():
            cues.append(Cue(found[3].strip(), found[1].strip(), read_clock(found[2])))
        elif found := SPOKEN.fullmatch(line):
            cues.append(Cue(found[2], found[1].strip()))
        elif cues:
            cues[-1] = replace(cues[-1], text=f"{cues[-1].text} {line}".strip())
        else:
            cues.append(Cue(line))
    return _end_cues(cues)


def _end_cues(cues: Sequence[Cue]) -> list[Cue]:
    """Where only beginnings are known, something ends when the next begins."""
    following = [*(cue.start for cue in cues[1:]), None]
    return [replace(cue, end=cue.end or after) for cue, after in zip(cues, following, strict=False)]


def _parse_json(text: str) -> list[Cue]:
    try:
        found = _find_entries(_load_json(text))
    except ValueError as error:
        if not BROKEN_JSON.match(text):  # a time or a remark in brackets begins like a list
            return []
        raise Permanent("It begins like JSON, and is none.") from error
    in_thousandths = _counts_thousandths(found)
    cues = [_make_cue(one, 1000 if in_thousandths else 1) for one in found]
    return _end_cues([cue for cue in cues if cue.text])


def _load_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # it also refuses numbers that are too large for a float, and those are JSON
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise Permanent("It is nested too deep to be read.") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _find_entries(value: Any, depth: int = 6) -> list[dict[str, Any]]:
    """The list of things that were said: the first whose entries have a text and a time or a speaker."""
    if depth < 0:
        return []
    if isinstance(value, list):
        entries = [cast(dict[str, Any], one) for one in cast(list[Any], value) if isinstance(one, dict)]
        if _are_spoken(entries):
            return entries
        return next((inner for one in entries[:5] if (inner := _find_entries(one, depth - 1))), NOTHING)
    if isinstance(value, dict):
        known = cast(dict[str, Any], value)
        keys = [*(key for key in LISTS if key in known), *(key for key in known if key not in LISTS)]
        return next((inner for key in keys if (inner := _find_entries(known[key], depth - 1))), NOTHING)
    return []


def _are_spoken(entries: Sequence[dict[str, Any]]) -> bool:
    has_text = bool(entries) and all(_pick(one, TEXTS) is not None for one in entries[:5])
    return has_text and any(_pick(one, (*STARTS, *SPEAKERS)) is not None for one in entries)


def _pick(entry: dict[str, Any], keys: Sequence[str]) -> Any:
    return next((entry[key] for key in keys if isinstance(entry.get(key), str | int | float)), None)


def _counts_thousandths(entries: Sequence[dict[str, Any]]) -> bool:
    """Recorders count seconds or thousandths: nobody speaks for a quarter of an hour at a time."""
    spans = [
        end - start
        for one in entries
        if isinstance(start := _pick(one, STARTS), int) and isinstance(end := _pick(one, ENDS), int)
    ]
    return bool(spans) and sorted(spans)[len(spans) // 2] > 300


def _make_cue(entry: dict[str, Any], divisor: int) -> Cue:
    start, end = (_read_time(_pick(entry, keys), divisor) for keys in (STARTS, ENDS))
    speaker = _pick(entry, SPEAKERS)
    named = f"Speaker {speaker}" if isinstance(speaker, int) else tidy.to_line(str(speaker or ""))[:100]
    return Cue(tidy.to_line(str(_pick(entry, TEXTS) or "")), named, start, end)


def _read_time(said: Any, divisor: int) -> float | None:
    if isinstance(said, int | float):
        try:
            seconds = said / divisor
        except OverflowError:  # a whole number of hundreds of digits
            seconds = math.inf
        if not math.isfinite(seconds):
            raise Permanent("A time in it is no number that can be read: it is too large.")
        return seconds if seconds >= 0 else None
    return read_clock(said) if isinstance(said, str) and re.fullmatch(CLOCK, said.strip()) else None


def read_clock(said: str) -> float:
    """`1:02:03.5`, `02:03,500` → seconds."""
    parts = said.strip().replace(",", ".").split(":")
    return sum(float(part) * 60**n for n, part in enumerate(reversed(parts)))


# --- writing


def join_cues(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Paragraphs: what one speaker says in a row, as long as it is short."""
    current: Cue | None = None
    for cue in (piece for one in cues for piece in _divide(one)):
        if current is None:
            current = cue
        elif cue.speaker == current.speaker and len(current.text) + len(cue.text) < LONGEST:
            end = cue.end if cue.end is not None else current.end
            current = replace(current, text=f"{current.text} {cue.text}", end=end)
        else:
            yield current
            current = cue
    if current is not None:
        yield current


def _divide(cue: Cue) -> Iterator[Cue]:
    """A long speech in paragraphs; each has the times of the whole, which is all that is known."""
    text = cue.text
    while len(text) > LONGEST:
        stop = text.rfind(" ", LONGEST // 2, LONGEST)
        stop = stop if stop > 0 else LONGEST
        yield replace(cue, text=text[:stop])
        text = text[stop:].strip()
    yield replace(cue, text=text)


def _write(cue: Cue) -> str:
    stamp = ""
    if cue.start is not None:
        end = "" if cue.end is None else f"–{_format_clock(cue.end)}"
        stamp = f"[{_format_clock(cue.start)}{end}] "
    return f"{stamp}{f'{cue.speaker}: ' if cue.speaker else ''}{cue.text}"


def _format_clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
