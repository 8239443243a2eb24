"""Decides what becomes of a link: a pure function with its reason, in a fixed order."""

from collections.abc import Sequence

from gristmill.errors import Unsafe
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import Location, check_address
from gristmill.sources.link.canonical import list_domains
from gristmill.sources.link.model import FoundLink, LinkDecision, LinkRule
from gristmill.sources.link.patterns import find_doubtful_pattern, find_unsafe_pattern


def decide_link(
    location: Location,
    *,
    found: FoundLink | None,
    is_indexed: bool,
    rules: Sequence[LinkRule],
    settings: FetchSettings,
) -> LinkDecision:
    """Already indexed → skip; unsafe pattern → blocked; allowed → safe, unless in doubt; denied → unsafe.

    Otherwise a person decides.
    """
    if is_indexed:
        return LinkDecision("skip", "It is indexed already.")
    if reason := find_unsafe_pattern(location, found):
        return LinkDecision("blocked", reason)
    if reason := _find_unsafe_address(location, settings):
        return LinkDecision("blocked", reason)
    rule = choose_rule(location, rules)
    doubt = find_doubtful_pattern(location)
    if doubt and (rule is None or rule.effect == "allow"):
        return LinkDecision("uncertain", doubt)
    if rule is None:
        return LinkDecision("uncertain", f"Nobody has decided about {location.host} yet.")
    if rule.effect == "allow":
        return LinkDecision("safe", f"{rule.pattern} is allowed.", rule.id)
    return LinkDecision("unsafe", f"{rule.pattern} is denied.", rule.id)


def _find_unsafe_address(location: Location, settings: FetchSettings) -> str | None:
    try:
        check_address(location.url, settings)
    except Unsafe as unsafe:
        return str(unsafe)
    return None


def choose_rule(location: Location, rules: Sequence[LinkRule]) -> LinkRule | None:
    """The rule that says most about the place; of two equal ones, that of the project before those of others."""
    domains = set(list_domains(location.host))
    fitting = [rule for rule in rules if rule.domain in domains and _is_within(location, rule.path)]
    # of two that say the same place in the same scope there is one; should there be more, to deny is safe
    return max(
        fitting, key=lambda one: (len(one.domain), len(one.path), one.nearness, one.effect == "deny"), default=None
    )


def _is_within(location: Location, path: str) -> bool:
    target = location.target
    return not path or target == path or target.startswith(path if path.endswith("/") else (f"{path}/", f"{path}?"))
