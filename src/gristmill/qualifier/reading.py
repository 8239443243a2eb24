"""What a decision reads: the words of an item, and what holds for its scope at that moment."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.models import About, ClientIdentity
from gristmill.qualifier.conventions import InForce
from gristmill.qualifier.model import Urgency


@dataclass(frozen=True)
class ScopeTerms:
    """What holds for the items of one scope at one moment."""

    now: datetime
    lead: timedelta
    me: ClientIdentity
    conventions: Sequence[InForce] = ()  # those that the scope sees


@dataclass(frozen=True)
class ItemWording:
    """The words of an item, and what is known beside them."""

    text: str
    new: Sequence[tuple[int, int]] | None
    about: About
    attachments: Sequence[str] = ()
    is_whole: bool = True
    is_due: bool = False  # it is the copy of an item, and its time has come
    has_text: bool = True
    is_awaited: bool = False  # a person waits for it
    deadline: datetime | None = None  # as the person or program says that added it
    urgency: Urgency = "low"  # at least
    file_names: Sequence[tuple[int, int]] = ()

    @property
    def digest(self) -> bytes:
        """By which the text is known again."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).digest()
