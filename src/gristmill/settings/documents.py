"""How files are taken in and read."""

from datetime import timedelta

from pydantic import Field

from gristmill.settings.values import Bytes, Duration, Slice


class DocumentSettings(Slice):
    """How files are taken in and read."""

    max_bytes: Bytes = Field(default=256 * 1024**2, ge=1, description="The largest file that is read.")
    max_pages: int = Field(default=5_000, ge=1, description="The most pages of one document.")
    max_pixels: int = Field(default=100_000_000, ge=10_000, description="The most pixels of one picture.")
    max_unpacked: Bytes = Field(
        default=1024**3, ge=1, description="The most that an office file or the attachments of a PDF unpack to."
    )
    max_parts: int = Field(
        default=100_000, ge=0, description="The most attachments of one mail or PDF, or mails of one mailbox."
    )
    max_depth: int = Field(default=5, ge=0, description="How deep documents may lie within each other.")
    timeout: Duration = Field(
        default=timedelta(seconds=120),
        description="How long opening a file, reading one page or dividing a batch of pages may take.",
    )
    memory: Bytes = Field(default=2 * 1024**3, ge=64 * 1024**2, description="The memory each of that may take.")
    processes: int = Field(
        default=0, ge=0, le=1024, description="How many pages are read at once by a worker; 0 takes one per core."
    )
    spool: Bytes = Field(
        default=2 * 1024**3, ge=1024**2, description="How much room copies of files may take where they are read."
    )
    images: Bytes = Field(
        default=256 * 1024**2, ge=1024**2, description="How much room drawn pictures of pages may take."
    )
