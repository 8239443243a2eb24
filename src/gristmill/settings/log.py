"""How events are written."""

from pydantic import Field

from gristmill.settings.values import Slice


class LogSettings(Slice):
    """How events are written."""

    level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="The least level that is logged."
    )
    json_lines: bool = Field(default=False, description="One JSON object a line instead of text for people.")
