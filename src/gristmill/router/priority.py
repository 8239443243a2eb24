"""How urgent a request is: by its header, its model or its nature, never above the limit of its sender."""

import hashlib
import re
from collections.abc import Mapping
from enum import IntEnum
from fnmatch import translate
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from gristmill.settings import RouterSettings


class Priority(IntEnum):
    """The four lanes; a smaller number is more urgent."""

    CRITICAL = 0
    CODING = 1
    VISION = 2
    BACKGROUND = 3

    @property
    def label(self) -> str:
        return LABELS[self]


LABELS = ("P0", "P1", "P2", "P3")
NUMBER = re.compile(r"[5-9][0-9]|100")
LEVELS = {f"P{level.value}": level for level in Priority}


class Sender(NamedTuple):
    """The sender of a request: a name for status, the highest priority allowed, and whether /router/* is open to it."""

    name: str
    ceiling: Priority
    admin: bool


class RequestUrgency(NamedTuple):
    """A priority, and whether it is a default: then a CPU will do as soon as no GPU is free."""

    priority: Priority
    auto: bool


def read_priority(header: str) -> Priority | None:
    """The priority a header names: P0 … P3, or a whole number from 100 (P0) down to 50 (P3); else None."""
    text = header.strip().upper()
    if text in LEVELS:
        return LEVELS[text]
    if not NUMBER.fullmatch(text):
        return None
    number = int(text)
    return Priority(sum(number < bound for bound in (100, 75, 51)))


class PriorityTable:
    """Which priority a request gets that names none."""

    def __init__(self, patterns: Mapping[str, str]) -> None:
        self._patterns = [
            (re.compile(translate(pattern.lower())), LEVELS[level]) for pattern, level in patterns.items()
        ]
        self._by_model = lru_cache(maxsize=1024)(self._look_up)
        self.urgency = lru_cache(maxsize=1024)(self._urgency)

    def _look_up(self, model: str) -> Priority | None:
        return next((level for pattern, level in self._patterns if pattern.match(model.lower())), None)

    def _urgency(
        self, header: str | None, model: str, ceiling: Priority, sees: bool, embeds: bool
    ) -> RequestUrgency | None:
        """The urgency of a request, or None when its header is no priority."""
        asked = self._by_model(model) if header is None else read_priority(header)
        if asked is None and header is not None:
            return None
        if asked is not None:
            return RequestUrgency(max(asked, ceiling), auto=False)
        nature = Priority.BACKGROUND if embeds else Priority.VISION if sees else Priority.CODING
        return RequestUrgency(max(nature, ceiling), auto=True)


class Senders:
    """The keys and networks that clients are known by; keys are kept only as digests."""

    def __init__(self, settings: RouterSettings) -> None:
        self._keys = {
            digest(key.key.get_secret_value()): Sender(key.name, LEVELS[key.max_priority], key.admin)
            for key in settings.keys
        }
        if settings.admin_key is not None:
            self._keys[digest(settings.admin_key.get_secret_value())] = Sender("admin", Priority.CRITICAL, admin=True)
        self._networks = [(item.network, LEVELS[item.max_priority]) for item in settings.networks]
        self._anonymous = Sender("anonymous", LEVELS[settings.anonymous_max_priority], admin=False)
        self._from = lru_cache(maxsize=4096)(self._of_address)

    def find(self, authorization: str | None, address: str | None) -> Sender | None:
        """The sender of a request, or None when its key is not one of ours."""
        if not self._keys or authorization is None:
            return self._from(address) if self._networks else self._anonymous
        scheme, _, token = authorization.partition(" ")
        return self._keys.get(digest(token.strip())) if scheme.lower() == "bearer" else None

    def _of_address(self, address: str | None) -> Sender:
        try:
            ip = ip_address(address or "")
        except ValueError:
            return self._anonymous
        ceiling = next((level for network, level in self._networks if ip in network), None)
        return self._anonymous if ceiling is None else self._anonymous._replace(name="network", ceiling=ceiling)


def digest(key: str) -> bytes:
    """The digest of a key: keys themselves are not kept in memory."""
    return hashlib.sha256(key.encode()).digest()
