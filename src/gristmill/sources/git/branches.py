"""Says which branches reach a commit: the default one, those that were merged into it, and those that stand apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from gristmill.sources.git.program import Git

MOST_BRANCHES = 20  # that are named of one commit
PATIENCE = 3600.0  # seconds for a walk through a history


@dataclass(frozen=True)
class Reach:
    """The branches of some commits; a commit on the default branch alone is not named here."""

    default: str | None
    merged: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    apart: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    new: Sequence[str] = ()  # what the default branch reaches, and did not before

    def name(self, commit: str, source: str) -> list[str]:
        """The default branch first; `source` is a branch that is known to reach it."""
        if self.default is None:
            return [source]
        return list(self.apart.get(commit) or [self.default, *self.merged.get(commit, ())])

    def mark(self, commit: str) -> str | None:
        """Changes with the branches that reach a commit off the default branch; None if the default branch reaches it.

        So a commit is read again when it is merged, and not whenever somebody begins a branch.
        """
        branches = self.apart.get(commit)
        return None if branches is None else "apart:" + sha256("\n".join(branches).encode()).hexdigest()[:12]


async def find_reach(git: Git, heads: Mapping[str, str], default: str, since: Sequence[str] = ()) -> Reach:
    """Which branches reach which commits; of the default branch only the commits that it did not reach before."""
    if default not in heads:
        return Reach(None)
    top = heads[default]
    said = await git.run("for-each-ref", f"--merged={top}", "--format=%(refname)", "refs/heads/")
    within = set(said.decode("utf-8", "replace").splitlines())
    others = {name: hash_ for name, hash_ in heads.items() if name != default}
    without = [f"^{one}" for one in since]
    new = await _walk(git, [top, *without])
    chain = {commit for commit, _ in await _walk(git, [top, *without], "--first-parent")}
    merged = {name: hash_ for name, hash_ in others.items() if name in within}
    apart = {name: hash_ for name, hash_ in others.items() if name not in within}
    return Reach(
        default,
        _spread(await _walk(git, [*merged.values(), *without]), merged, chain) if merged else {},
        _spread(await _walk(git, [*apart.values(), f"^{top}"]), apart, set()) if apart else {},
        [commit for commit, _ in new],
    )


async def _walk(git: Git, given: Sequence[str], *words: str) -> list[tuple[str, list[str]]]:
    """Commits with their parents, each before its parents."""
    lines = "".join(f"{one}\n" for one in given)
    said = await git.run("rev-list", "--stdin", "--topo-order", "--parents", *words, given=lines, patience=PATIENCE)
    rows = (line.split() for line in said.decode().splitlines())
    return [(commit, parents) for commit, *parents in rows]


def _spread(
    walked: Sequence[tuple[str, list[str]]], heads: Mapping[str, str], chain: set[str]
) -> dict[str, Sequence[str]]:
    """The names of the branches that reach each commit; a commit made on the default branch itself ends the walk."""
    reached: dict[str, set[str]] = {}
    for name, hash_ in heads.items():
        reached.setdefault(hash_, set()).add(name)
    found: dict[str, Sequence[str]] = {}
    for commit, parents in walked:
        names = reached.pop(commit, set[str]())
        if not names or commit in chain:
            continue
        found[commit] = sorted(names)[:MOST_BRANCHES]
        for parent in parents:
            reached.setdefault(parent, set()).update(names)
    return found
