"""Transcripts of meetings: who said what and when, in the forms of the common recorders."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gristmill.documents import find_time_span
from gristmill.documents.reading import Limits, inspect, read
from gristmill.errors import Permanent
from gristmill.knowledge import chunks

VTT = """WEBVTT

00:00:01.000 --> 00:00:04.000
<v Anna Novak>Good morning.

00:00:04.500 --> 00:00:09.000
<v Bob>Good morning, Anna. Is the offer ready?
"""
SRT = """1
00:00:01,000 --> 00:00:04,000
Anna Novak: Good morning.

2
00:00:04,500 --> 00:00:09,000
Bob: Good morning, Anna.
Is the offer ready?
"""
WHISPER = {
    "text": "…",
    "segments": [
        {"start": 1.0, "end": 4.0, "text": " Good morning.", "speaker": "Anna Novak"},
        {"start": 4.5, "end": 9.0, "text": "Good morning, Anna. Is the offer ready?", "speaker": "Bob"},
    ],
}
IN_THOUSANDTHS = {
    "utterances": [
        {"speaker": "Anna Novak", "start": 1_000, "end": 4_000, "text": "Good morning."},
        {"speaker": "Bob", "start": 4_500, "end": 9_000, "text": "Good morning, Anna. Is the offer ready?"},
    ]
}
NESTED = {
    "results": {
        "channels": [1],
        "utterances": [
            {"start": 1.0, "end": 4.0, "transcript": "Good morning.", "speaker_name": "Anna Novak"},
            {"start": 4.5, "end": 9.0, "transcript": "Good morning, Anna. Is the offer ready?", "speaker_name": "Bob"},
        ],
    }
}
PLAIN = "[00:00:01] Anna Novak: Good morning.\n[00:00:04] Bob: Good morning, Anna.\nIs the offer ready?\n"
NAMED = "Anna Novak  0:01\nGood morning.\n\nBob  0:04\nGood morning, Anna. Is the offer ready?\n"


def open_file(folder: Path, name: str, content: Any, *, known: bool = True) -> tuple[Any, str]:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    found = inspect(str(path), name, Limits(), known_type="transcript" if known else None)
    pages = [read(str(path), found.type, n, Limits()).text for n in range(1, found.pages + 1)]
    return found, "\n".join(pages)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.vtt", VTT),
        ("a.srt", SRT),
        ("whisper.json", WHISPER),
        ("thousandths.json", IN_THOUSANDTHS),
        ("nested.json", NESTED),
        ("plain.txt", PLAIN),
        ("named.txt", NAMED),
    ],
)
def test_every_form_says_who_spoke_and_when(tmp_path: Path, name: str, content: Any) -> None:
    found, text = open_file(tmp_path, name, content)
    assert found.meta["speakers"] == ["Anna Novak", "Bob"]
    first, second = text.split("\n\n")
    assert first.startswith("[00:00:01–00:00:04] Anna Novak: Good morning.")
    assert second.startswith("[00:00:04")
    assert second.endswith("Bob: Good morning, Anna. Is the offer ready?")


@pytest.mark.parametrize(("name", "content"), [("a.vtt", VTT), ("a.srt", SRT), ("a.txt", SRT)])
def test_subtitles_are_known_by_their_content(tmp_path: Path, name: str, content: str) -> None:
    assert open_file(tmp_path, name, content, known=False)[0].type == "transcript"


def test_every_chunk_keeps_its_time_span(tmp_path: Path) -> None:
    cues = [
        {"start": n * 10.0, "end": n * 10.0 + 9, "speaker": f"S{n % 3}", "text": f"Sentence {n} of a long talk. " * 5}
        for n in range(200)
    ]
    _, text = open_file(tmp_path, "long.json", {"segments": cues})
    pieces = chunks.split(text, title="Meeting")
    assert len(pieces) > 10
    spans = [find_time_span(piece.text) for piece in pieces]
    assert all(span is not None for span in spans)
    starts = [span[0] for span in spans if span]
    assert starts == sorted(starts)
    assert max(span[1] for span in spans if span) == 1_999


def test_a_damaged_subtitle_file_loses_nothing_that_can_be_read(tmp_path: Path) -> None:
    damaged = VTT.replace("00:00:04.500 --> 00:00:09.000", "0:04.500 -> 00:00:09.000").replace(
        "WEBVTT", "WEBVTT x\nNOTE"
    )
    _, text = open_file(tmp_path, "bad.vtt", damaged)
    assert "Good morning." in text


@pytest.mark.parametrize("content", ["{not json", "", "   \n"], ids=["broken", "empty", "blank"])
def test_what_is_no_transcript_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    with pytest.raises(Permanent):
        open_file(tmp_path, "x.json", content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"entries": [{"text": "hi yak", "start": 1e400, "end": -5, "speaker": null}]}', "A time in it is no number"),
        ('{"entries": [{"text": "hi yak", "start": 1' + "0" * 400 + "}]}", "A time in it is no number"),
        ('{"entries": [{"text": "hi yak", "start": NaN}]}', "It begins like JSON, and is none."),
        ("[" * 100_000, "It is nested too deep to be read."),
        ("[[[[", "It begins like JSON, and is none."),
        ('[{"text": "cut off", "start": 1', "It begins like JSON, and is none."),
    ],
    ids=["too large", "hundreds of digits", "NaN", "deep", "brackets", "cut off"],
)
def test_json_that_cannot_be_a_meeting_says_why(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(Permanent, match=sentence):
        open_file(tmp_path, "x.json", content)


def test_a_time_before_the_beginning_is_no_time(tmp_path: Path) -> None:
    entries = [{"text": "Good morning.", "speaker": "Anna", "start": 3, "end": -5}]
    _, text = open_file(tmp_path, "x.json", {"entries": entries})
    assert text == "[00:00:03] Anna: Good morning."


@pytest.mark.parametrize("text", ["[00:00:01] Anna: Hello.", "[Music] Anna: Hello.", "[[inaudible]] Hello."])
def test_a_text_that_begins_with_a_bracket_stays_a_text(tmp_path: Path, text: str) -> None:
    assert open_file(tmp_path, "x.txt", text)[1].endswith("Hello.")


@pytest.mark.parametrize(
    "text", ["0:0" * 100_000, "[00:00:01]" * 50_000, "A: " * 100_000, "00:00 --> " * 50_000, "a" * 500_000], ids=len
)
def test_a_hostile_text_takes_no_longer_than_its_length(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    with suppress(Permanent):  # nothing may be said in it
        open_file(tmp_path, "x.txt", text)
    assert time.process_time() - began < 10
