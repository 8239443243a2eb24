"""Takes no blanks for words: a text that must have some length has it without the blanks around it."""

from typing import Any

from pydantic import BaseModel, ValidationInfo, field_validator

from gristmill.wording import format_count


class WordedModel(BaseModel):
    """What a model writes. The text itself stays as it is: blanks may belong to a file."""

    @field_validator("*")
    @classmethod
    def check_words(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str) and len(value.strip()) < (least := find_least(cls, info.field_name or "")):
            raise ValueError(f"it must have at least {format_count(least, 'character')} beside the blanks around it")
        return value


def find_least(shape: type[BaseModel], name: str) -> int:
    """How many characters a field must have at least."""
    limits = [getattr(one, "min_length", None) for one in shape.model_fields[name].metadata]
    return max((one for one in limits if isinstance(one, int)), default=0)
