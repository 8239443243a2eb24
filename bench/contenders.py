"""Who takes part, and how one sees from outside that they have nothing left to do."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from bench.peers import graphile_peer


@dataclass(frozen=True)
class Contender:
    """`open` answers whether any job is still to be done, in the contender's own tables."""

    name: str
    key: str
    open: str
    package: str | None = None

    @property
    def module(self) -> str:
        return f"bench.peers.{self.key}_peer"

    def missing(self) -> str | None:
        """Why it cannot take part, if it cannot."""
        if self.key == "graphile":
            return graphile_peer.provide()
        try:
            version(self.package or "gristmill")
        except PackageNotFoundError:
            return f"{self.package} is not installed"
        return None


TICKETS = "SELECT EXISTS (SELECT FROM ticket)"
OURS = Contender("gristmill", "gristmill", TICKETS)
BARE = Contender("bare SQL, the limit", "bare", TICKETS)
PGQUEUER = Contender("PgQueuer", "pgqueuer", "SELECT EXISTS (SELECT FROM pgqueuer)", "pgqueuer")
PROCRASTINATE = Contender(
    "procrastinate",
    "procrastinate",
    "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
    "procrastinate",
)
GRAPHILE = Contender("graphile-worker", "graphile", "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)")
