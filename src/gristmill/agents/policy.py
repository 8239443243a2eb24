"""What agents may do in a project without asking, what they must ask for, and what they never do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from gristmill.agents.effects import Allow, Ask, Changes, RefuseEffect, Verdict
from gristmill.agents.provenance import Origin, TargetKind, join_sources, lower_ascii
from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unsafe
from gristmill.scopes import Scope, find_scope, scope_id
from gristmill.sources import read_location, read_pattern

SQL = queries("gristmill.agents", "policy.sql")
MOST_ENTRIES = 200
LONGEST_ENTRY = 300  # characters
SECRETS_AND_ROBOTS = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "id_rsa*",
    "id_ed25519*",
    ".ssh/**",
    ".aws/**",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    ".azure-pipelines/**",
    "bitbucket-pipelines.yml",
    ".gitea/workflows/**",
    ".forgejo/workflows/**",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".woodpecker/**",
    "Jenkinsfile",
    ".gitmodules",
    ".gitattributes",
    ".git/**",
)


@dataclass(frozen=True)
class Policy:
    """What agents may do. A pattern without a slash is meant in every folder; `**` is any number of folders."""

    branches: Sequence[str] = ("agent/*",)  # that may be written; no other branch is
    forbidden_files: Sequence[str] = SECRETS_AND_ROBOTS
    max_files: int = 20  # that one run changes without asking
    auto_push: bool = False  # whether branches that may be written are also pushed without asking
    recipients: Sequence[str] = ()  # mail addresses that may be written to; `*@example.org` is all of a domain
    domains: Sequence[str] = ()  # hosts whose pages may be fetched; `*.example.org` is all below it
    commands: Sequence[str] = ()  # that may be run in the sandbox, word by word; a last word `*` is any more words
    # that may change the outside where a person said every target, and no text that was read has words of the call
    tools: Sequence[str] = ()


DEFAULT = Policy()
PATTERNS = tuple(one.name for one in fields(Policy) if isinstance(getattr(DEFAULT, one.name), tuple))


@dataclass(frozen=True)
class Target:
    """A value of a call that chooses whom or what it reaches, and who said it."""

    argument: str
    kind: TargetKind
    value: str
    origin: Origin


@dataclass(frozen=True)
class CopiedWords:
    """A free text of a call that has words of texts that were read."""

    argument: str
    sources: Sequence[str]


@dataclass(frozen=True)
class Proposal:
    """What a call would do, as far as a policy judges it."""

    tool: str
    changes: Changes
    targets: Sequence[Target] = ()
    files: Sequence[str] = ()  # of the workspace that it changes
    branch: str | None = None  # that it writes
    pushes: bool = False
    copied: Sequence[CopiedWords] = ()  # in a call of a tool that may act by itself
    is_second: bool = False  # the same tool reached the same targets before, for the same piece of work


def judge(proposal: Proposal, policy: Policy, changed_before: Sequence[str] = ()) -> Verdict:
    """Whether a call may happen: a refusal counts more than a question, a question more than a permission."""
    if refusal := find_refusal(proposal, policy):
        return RefuseEffect(refusal)
    reasons = [*_ask_about_targets(proposal, policy), *_ask_about_files(proposal, policy, changed_before)]
    reasons += [f"{one.argument} has words that come from {join_sources(one.sources)}." for one in proposal.copied]
    if proposal.changes == "outside" and not is_permitted(proposal, policy):
        reasons.append("It changes something outside, and the policy does not name exactly this.")
    if proposal.is_second:
        reasons.append("The same tool has reached the same target before, for the same piece of work.")
    return Ask(tuple(reasons)) if reasons else Allow()


def find_refusal(proposal: Proposal, policy: Policy) -> str | None:
    for file in proposal.files:
        if pattern := find_pattern(file, policy.forbidden_files):
            return f"The policy forbids to change {file} ({pattern})."
    if proposal.branch is not None and not find_pattern(proposal.branch, policy.branches, whole=True):
        allowed = ", ".join(policy.branches) or "none"
        return f"The policy does not let agents write the branch {proposal.branch}; it names {allowed}."
    return None


def _ask_about_targets(proposal: Proposal, policy: Policy) -> Iterable[str]:
    for target in proposal.targets:
        # a person who says no in this run means it, whatever the policy names
        is_known = target.origin.is_trusted or is_named(target, policy) or _is_new_file(proposal, target)
        if target.origin.who == "denied" or not is_known:
            yield f"{target.argument} is {target.value!r}, and {target.origin}."


def _is_new_file(proposal: Proposal, target: Target) -> bool:
    """A file that a model names itself lies in the workspace alone, and is seen before it leaves it."""
    return target.kind == "path" and target.origin.who == "nobody" and proposal.changes != "outside"


def _ask_about_files(proposal: Proposal, policy: Policy, changed_before: Sequence[str]) -> Iterable[str]:
    files = {*changed_before, *proposal.files}
    if proposal.files and len(files) > policy.max_files:
        yield f"The run would change {len(files)} files, and the policy allows {policy.max_files}."


def is_permitted(proposal: Proposal, policy: Policy) -> bool:
    """Whether the policy names exactly this change of the outside."""
    if proposal.pushes:
        return policy.auto_push and proposal.branch is not None
    recipients = [one for one in proposal.targets if one.kind == "recipient"]
    if recipients:
        return all(is_named(one, policy) for one in recipients)
    # a tool that may act by itself acts on what a person named, and on nothing else
    is_own = all(one.origin.is_trusted for one in proposal.targets) and not proposal.copied
    return proposal.tool in policy.tools and is_own


def is_named(target: Target, policy: Policy) -> bool:
    """Whether the policy itself names a value."""
    match target.kind:
        case "recipient":
            return any(fits_recipient(target.value, pattern) for pattern in policy.recipients)
        case "url":
            return any(fits_host(target.value, pattern) for pattern in policy.domains)
        case "command":
            return any(fits_command(target.value, pattern) for pattern in policy.commands)
        case "branch":
            return find_pattern(target.value, policy.branches, whole=True) is not None
        case _:
            return False


def fits_recipient(address: str, pattern: str) -> bool:
    """Addresses that look alike are not the same: beside capital letters, every character counts."""
    address, pattern = lower_ascii(address), lower_ascii(pattern)
    if pattern.startswith("*@"):
        return address.count("@") == 1 and address.partition("@")[2] == pattern[2:]
    return address == pattern


def fits_host(url: str, pattern: str) -> bool:
    """Whether an address has this host, read as the fetcher reads it: the host that is judged is the one called."""
    try:
        host = read_location(url).host
        name = pattern.removeprefix("*.")
        # the host is in ASCII, as it is called
        named = lower_ascii(name) if name.isascii() else read_location(f"https://{name}").host
    except Unsafe:
        return False
    return host.endswith(f".{named}") if pattern.startswith("*.") else host == named


def fits_command(command: str, pattern: str) -> bool:
    words, wanted = command.split(), pattern.split()
    if wanted[-1:] == ["*"]:
        return words[: len(wanted) - 1] == wanted[:-1]
    return words == wanted


def find_pattern(path: str, patterns: Iterable[str], *, whole: bool = False) -> str | None:
    """The first pattern that fits a path; unless the `whole` is meant, one without a slash fits in every folder."""
    for pattern in patterns:
        places = [path] if whole or "/" in pattern else path.split("/")
        if any(fits_pattern(place, pattern) for place in places):
            return pattern
    return None


def fits_pattern(path: str, pattern: str) -> bool:
    """`*` is a part of a name, `**` any number of folders. Capitals do not count: some disks ignore them."""
    path, pattern = path.casefold(), pattern.casefold()
    if "**" not in pattern:
        return path.count("/") == pattern.count("/") and _fit_names(path.split("/"), pattern.split("/"))
    return _fit_folders(path.split("/"), pattern.split("/"))


def _fit_names(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return all(fnmatchcase(name, pattern) for name, pattern in zip(names, patterns, strict=True))


def _fit_folders(names: list[str], patterns: list[str]) -> bool:
    """How far each beginning of the patterns can reach, name by name: no pattern makes this take long."""
    patterns = [one for n, one in enumerate(patterns) if one != "**" or patterns[n - 1 : n] != ["**"]]
    if len(patterns) - patterns.count("**") > len(names):
        return False
    reached = _pass_over({0}, patterns)
    for name in names:
        further = set[int]()
        for place in reached:
            if place < len(patterns) and patterns[place] == "**":
                further.add(place)
            elif place < len(patterns) and fnmatchcase(name, patterns[place]):
                further.add(place + 1)
        reached = _pass_over(further, patterns)
    return len(patterns) in reached


def _pass_over(places: set[int], patterns: list[str]) -> set[int]:
    """These places, and those behind each `**`, which may be no folder at all."""
    return places | {place + 1 for place in places if patterns[place : place + 1] == ["**"]}


# --- in the database


async def load_policy(tx: Tx, scope: Scope) -> Policy:
    """The policy of a project: what it permits is its own, else its client's, else everybody's; what any of them
    forbids is forbidden.
    """
    rows = await tx.all(SQL["load_policies"], Policy, client=scope.client, project=scope.project)
    return combine_policies([_freeze(row) for row in rows])


def combine_policies(levels: Sequence[Policy]) -> Policy:
    """From everybody's to the project's own."""
    if not levels:
        return DEFAULT
    forbidden = dict.fromkeys(pattern for level in levels for pattern in level.forbidden_files)
    return replace(levels[-1], forbidden_files=tuple(forbidden), max_files=min(level.max_files for level in levels))


async def find_policy(tx: Tx, scope: Scope) -> Policy | None:
    """The policy that was set for exactly this scope."""
    found = await tx.one(SQL["load_policy"], Policy, client=scope.client, project=scope.project)
    return _freeze(found) if found is not None else None


def _freeze(row: Policy) -> Policy:
    return replace(row, **{name: tuple(getattr(row, name)) for name in PATTERNS})


async def set_policy(tx: Tx, scope: Scope, by: str, **changes: Any) -> Policy:
    """Change the policy of a scope; what is not named stays as it is, or is as it is by default."""
    policy = _freeze(replace(await find_policy(tx, scope) or DEFAULT, **changes))
    check_policy(policy)
    values = {one.name: getattr(policy, one.name) for one in fields(Policy)}
    listed = {name: list(values[name]) for name in PATTERNS}
    await tx.execute(SQL["set_policy"], scope=await scope_id(tx, scope), by=by, **(values | listed))
    return policy


async def drop_policy(tx: Tx, scope: Scope) -> bool:
    """Let a scope have the policy of the level above it; whether it had one of its own."""
    found = await find_scope(tx, scope)
    return found is not None and await tx.value(SQL["drop_policy"], scope=found) is not None


def _check_domain(entry: str) -> None:
    """As for links; a policy speaks of whole hosts, so a path or a port is refused, too."""
    try:
        domain, _ = read_pattern(entry)
    except Refused:
        domain = ""
    if not domain or any(sign in entry.removeprefix("*.") for sign in "/@:?#*"):
        raise Refused(f"“{entry}” is no domain: write docs.example.org, or *.example.org.")


def check_policy(policy: Policy) -> None:
    if not 0 <= policy.max_files <= 100_000:
        raise Refused(f"max_files is {policy.max_files}: it goes from 0 to 100000.")
    for name in PATTERNS:
        entries: Sequence[str] = getattr(policy, name)
        if len(entries) > MOST_ENTRIES:
            raise Refused(f"{name} has {len(entries):,} entries; {MOST_ENTRIES} are the most.")
        for entry in entries:
            if not entry.strip() or entry != entry.strip() or len(entry) > LONGEST_ENTRY or not entry.isprintable():
                raise Refused(f"{entry!r} is no entry for {name}: write up to {LONGEST_ENTRY} printable characters.")
    for entry in policy.recipients:
        if entry.count("@") != 1 or "*" in entry.removeprefix("*@") or entry == "*@":
            raise Refused(f"“{entry}” is no recipient: write anna@example.org, or *@example.org.")
    for entry in policy.domains:
        _check_domain(entry)
    for entry in policy.commands:
        if entry.split()[0] == "*":
            raise Refused("A command begins with the name of a program: write for example “make test” or “pytest *”.")
