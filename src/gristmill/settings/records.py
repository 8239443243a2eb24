"""How tables of records are loaded, embedded and served by cron."""

from datetime import timedelta

from pydantic import Field

from gristmill.settings.values import Bytes, Duration, Key, Slice


class RecordsSettings(Slice):
    """How tables of records are loaded, embedded and served by cron."""

    max_bytes: Bytes = Field(default=4 * 1024**3, ge=1, description="The largest file that is imported.")
    max_text: int = Field(default=1_000_000, ge=100, description="The most characters of one row.")
    batch: int = Field(default=10_000, ge=1, le=100_000, description="How many rows are loaded in one transaction.")
    keep_rejected: int = Field(
        default=10_000, ge=0, description="How many rejected rows of one import are kept, for people to mend them."
    )
    embed_job: int = Field(default=250, ge=1, description="How many records one job embeds before others have a turn.")
    embed_batch: int = Field(default=25, ge=1, description="How many records the model is given in one call.")
    timeout: Duration = Field(default=timedelta(seconds=120), description="How long reading one batch may take.")
    memory: Bytes = Field(default=1024**3, ge=64 * 1024**2, description="The memory that reading one batch may take.")
    cron_secret: Key | None = Field(
        default=None, description="What cron sends as a bearer token to the worker endpoints; CRON_SECRET works, too."
    )
    budget: Duration = Field(
        default=timedelta(seconds=60), description="How long one call of a worker endpoint may take."
    )
    keep_for: Duration = Field(
        default=timedelta(days=7), description="How old a finished or failed job is that the cleanup endpoint removes."
    )
