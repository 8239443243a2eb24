"""The kinds of values that settings have, as people write them."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, SecretStr

from gristmill.durations import parse_duration


def _read_duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _read_bytes(value: object) -> object:
    """`24GB`, `800 MiB` or a number of bytes; GPU makers and Ollama count a GB as 2³⁰."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)i?b?\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")) if match else value


def _refuse_empty_folder(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("it is empty: name a folder, or leave it out")
    return value


def _refuse_empty_key(key: SecretStr) -> SecretStr:
    if not key.get_secret_value().strip():
        raise ValueError("it is empty, which would let everybody in: write a key, or leave it out")
    return key


Duration = Annotated[timedelta, BeforeValidator(_read_duration)]
Bytes = Annotated[int, BeforeValidator(_read_bytes)]
Folder = Annotated[Path, BeforeValidator(_refuse_empty_folder)]
Key = Annotated[SecretStr, AfterValidator(_refuse_empty_key)]
Level = Literal["P0", "P1", "P2", "P3"]


class Slice(BaseModel):
    """The settings of one room; the room gets these and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")
