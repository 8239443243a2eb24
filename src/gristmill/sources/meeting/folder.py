"""Transcripts in a folder of this machine: subtitles, JSON of recorders, plain text with speakers."""

from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import PurePosixPath

from pydantic import Field

from gristmill.documents import parse_transcript
from gristmill.settings import Slice
from gristmill.sources.folder.connector import find_by_suffix, open_folder
from gristmill.sources.model import Connector, ConnectorContext, Description, Fetched, Kind

LONGEST_TEXT = 1_000_000  # characters that are looked through for links
LONGEST_URN = 1_000  # characters of a path in a URN


class TranscriptOptions(Slice):
    """Where the transcripts are."""

    path: str = Field(min_length=1, description="The folder of .vtt, .srt, .json and .txt files.")


def open_transcripts(options: TranscriptOptions, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    return open_folder(options.path, find_by_suffix(".vtt", ".srt", ".json", ".txt"), context)


def describe_transcript(item: Fetched) -> Description:
    """A transcript is known by its place in the folder."""
    said = parse_transcript(item.content)
    place = PurePosixPath(item.external)
    urn = item.external if len(item.external) <= LONGEST_URN else sha256(item.external.encode()).hexdigest()
    return Description(
        urn=f"meeting::{item.source}/{urn}",
        type="meeting",
        name=place.name[:200] or "meeting",
        text="\n".join(cue.text for cue in said)[:LONGEST_TEXT],
        title=place.stem.replace("_", " ")[:300] or None,
        reading="transcript",
    )


TRANSCRIPTS = Kind(
    "transcripts",
    "A folder of transcripts of meetings.",
    TranscriptOptions,
    open_transcripts,
    describe_transcript,
)
