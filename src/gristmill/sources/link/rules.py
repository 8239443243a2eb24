"""The rules of people about domains: allow, deny, take back; what they change is decided anew in the background."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gristmill.db import Tx
from gristmill.errors import Refused, Unknown, Unsafe
from gristmill.ids import ScopeId
from gristmill.queue import send
from gristmill.scopes import Scope, scope_id
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import Location, check_address, read_location
from gristmill.sources.link.canonical import list_domains
from gristmill.sources.link.letters import ReviewLinks
from gristmill.sources.link.model import Effect, LinkRule
from gristmill.sources.link.statements import SQL

LONGEST_PATH = 500  # characters
STRICT = FetchSettings()


@dataclass(frozen=True)
class ShownRule:
    """A rule as people see it."""

    id: int
    client: str
    project: str
    effect: Effect
    domain: str
    path: str
    by: str
    at: datetime

    @property
    def pattern(self) -> str:
        return self.domain + self.path


def read_pattern(text: str) -> tuple[str, str]:
    """`example.org`, `*.example.org`, `example.org/docs` or an address: the domain, and the beginning of the path."""
    plain = re.sub(r"^(https?://)?(\*\.)?", "", text.strip(), flags=re.IGNORECASE).rstrip("*")
    try:
        location = read_location(f"https://{plain}")
    except Unsafe:
        raise Refused(f"“{text[:80]}” is no domain: write for example example.org or example.org/docs.") from None
    if "." not in location.host and location.address is None:
        raise Refused(f"“{location.host}” is a whole top-level domain or a bare name: write for example example.org.")
    path = location.target.partition("?")[0].rstrip("/")
    if len(path) > LONGEST_PATH:
        raise Refused(f"The path of a rule has at most {LONGEST_PATH} characters.")
    return location.host, path


async def set_rule(
    tx: Tx, scope: Scope, effect: Effect, pattern: str, by: str, *, settings: FetchSettings = STRICT
) -> ShownRule:
    """Allow or deny a domain with its subdomains, or a part of it; links that wait are decided by it."""
    domain, path = read_pattern(pattern)
    if effect == "allow":
        _check_allowed(domain, settings)
    own = await scope_id(tx, scope)
    id_ = await tx.only_value(SQL["add_rule"], int, scope=own, effect=effect, domain=domain, path=path, by=by[:200])
    await send(tx, ReviewLinks(own, domain), scope=own)
    return next(one for one in await list_rules(tx, before=id_ + 1, limit=1) if one.id == id_)


def _check_allowed(domain: str, settings: FetchSettings) -> None:
    """A rule that could never let a link be fetched is refused: the person who set it would wait in vain."""
    host = f"[{domain}]" if ":" in domain else domain
    try:
        check_address(f"https://{host}/", settings)
    except Unsafe as error:
        raise Refused(f"No rule lets links of {domain} be fetched: {error}") from None


class _RemovedRule(NamedTuple):
    scope: ScopeId
    domain: str
    path: str


async def remove_rule(tx: Tx, id_: int) -> str:
    """Take a rule back; links that it decided are decided anew. Its pattern."""
    row = await tx.one(SQL["remove_rule"], _RemovedRule, id=id_)
    if row is None:
        raise Unknown(f"There is no rule {id_} that you may remove.")
    await send(tx, ReviewLinks(row.scope, row.domain), scope=row.scope)
    return f"{row.domain}{row.path}"


async def list_rules(tx: Tx, *, before: int | None = None, limit: int = 100) -> list[ShownRule]:
    """The newest first."""
    return await tx.all(SQL["list_rules"], ShownRule, before=before, limit=limit)


async def find_rules(tx: Tx, scope: Scope, locations: Iterable[Location]) -> Sequence[LinkRule]:
    """All rules that a scope sees for these places."""
    domains = {domain for one in locations for domain in list_domains(one.host)}
    if not domains:
        return []
    return await tx.all(
        SQL["find_rules"], LinkRule, domains=sorted(domains), client=scope.client, project=scope.project
    )
