"""All settings, read once from `GRISTMILL_*` and an optional gristmill.toml, and handed on in slices."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from typing_extensions import override

from gristmill.durations import duration
from gristmill.errors import Refused


def _parsed(value: Any) -> Any:
    return duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_parsed)]


def default_data() -> Path:
    """Where the embedded database lives: the system's place for root, the user's for everybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/gristmill")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "gristmill"  # noqa: TID251 this is the place


def environment(**more: str) -> dict[str, str]:
    """The environment for a program we start, with some more in it."""
    return os.environ | more  # noqa: TID251 this is the place


class Slice(BaseModel):
    """A part of the settings that one room is handed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QueueSettings(Slice):
    """How workers claim, renew, settle and clean up."""

    heartbeat: Duration = Field(default=timedelta(seconds=30), description="How often a worker says that it lives.")
    lease: Duration = Field(default=timedelta(seconds=120), description="How long a silent worker keeps its tasks.")
    poll: Duration = Field(
        default=timedelta(seconds=1), description="How often a worker looks for tasks nobody told it of."
    )
    rescue: Duration = Field(
        default=timedelta(seconds=15), description="How often the leases of dead workers are taken back."
    )
    stall: Duration = Field(
        default=timedelta(minutes=5),
        description="How long the event loop of a worker may stand still before it ends itself.",
    )
    stop: Duration = Field(
        default=timedelta(seconds=20), description="How long a stopping worker waits for its running tasks."
    )
    batch: int = Field(
        default=500, ge=1, le=900, description="How many tasks are claimed or settled in one transaction at most."
    )
    max_payload: int = Field(
        default=1_000_000, ge=1_000, description="The largest payload of one task, in bytes of JSON."
    )
    dead_alert: int = Field(default=10, ge=1, description="How many dead letters raise an alarm.")
    dead_keep_for: Duration = Field(default=timedelta(days=30), description="How long dead letters are kept.")
    dead_keep: int = Field(default=5_000, ge=0, description="How many dead letters are kept at most.")
    keep_for: Duration = Field(default=timedelta(days=7), description="How long finished tasks are kept.")
    keep: int = Field(default=1_000, ge=0, description="How many finished tasks are kept per queue.")


class LogSettings(Slice):
    """How events are written."""

    level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="The least level that is logged."
    )
    json_lines: bool = Field(default=False, description="One JSON object a line instead of text for people.")


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix="GRISTMILL_",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        toml_file="gristmill.toml",
        extra="forbid",
        frozen=True,
    )

    database_url: str | None = Field(
        default=None, description="A PostgreSQL ≥ 14 with pgvector; without it, one is started in the data folder."
    )
    data: Path = Field(default_factory=default_data, description="The data folder of the embedded PostgreSQL.")
    app: str = Field(
        default="gristmill.app:handlers",
        description="Where the handlers are that workers run: module:name or file.py:name.",
    )
    queue: QueueSettings = QueueSettings()
    log: LogSettings = LogSettings()

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load() -> Settings:
    """The settings, or one sentence about the first that is wrong."""
    try:
        return Settings()
    except ValidationError as wrong:
        first = wrong.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        reason = first["msg"].removeprefix("Value error, ")
        raise Refused(f"The setting GRISTMILL_{name} is wrong: {reason}. See docs/settings.md.") from wrong
