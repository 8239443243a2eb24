"""What nodes are called: one key for every way of writing a name, and the aliases that a client keeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.models import make_entity_key

SQL = queries("gristmill.knowledge", "keys.sql")


@dataclass(frozen=True)
class Alias:
    """Another name for a node."""

    alias: str
    key: str


@dataclass(frozen=True)
class AliasMerge:
    """How many mentions and relations of the graph a new alias changed."""

    alias: Alias
    mentions: int
    relations: int


def normalise_key(key: str) -> str:
    """`Person::person::Jane Doe` is `person::jane doe`."""
    namespace, _, name = key.partition("::")
    if found := make_entity_key(namespace, name):
        return found
    raise Refused(f"“{key}” is no key of a node: write namespace::name, for example person::jane doe.")


async def resolve_keys(tx: Tx, client: str, keys: Sequence[str]) -> list[str]:
    """The keys under which the graph keeps these nodes: an alias becomes the key that it stands for."""
    named = [normalise_key(key) for key in keys]
    found = await tx.all(SQL["resolve_keys"], Alias, client=client, aliases=named)
    known = {one.alias: one.key for one in found}
    return [known.get(key, key) for key in named]


async def block_alias_changes(tx: Tx) -> None:
    """To be called before aliases are read in order to write by them: no alias changes until the transaction ends."""
    await tx.execute(SQL["block_alias_changes"])


async def keys_with_name(tx: Tx, client: str, names: Sequence[str]) -> list[str]:
    """The keys that have one of these names, or an alias with one, in any namespace."""
    return await tx.values(SQL["keys_with_name"], str, client=client, names=list(names))


async def aliases(tx: Tx, client: str) -> list[Alias]:
    return await tx.all(SQL["list_aliases"], Alias, client=client)


async def add_alias(tx: Tx, client: str, alias: str, key: str) -> AliasMerge:
    """Makes `alias` another name of `key`, and merges the node of that name into the one of the key.

    All writers wait meanwhile: those before have finished, and those after know the alias. So nothing is left under
    the old name.
    """
    await tx.execute(SQL["block_mention_writers"])
    alias = normalise_key(alias)
    (key,) = await resolve_keys(tx, client, [key])
    if alias == key:
        raise Refused(f"“{alias}” is known as “{key}” already.")
    taken = await tx.value(SQL["target_of_alias"], str, client=client, alias=alias)
    if taken is not None and taken != key:
        raise Refused(f"“{alias}” is an alias of “{taken}” already: remove that first.")
    await tx.execute(SQL["repoint_aliases"], client=client, alias=alias, key=key)
    await tx.execute(SQL["add_alias"], client=client, alias=alias, key=key)
    await tx.execute(SQL["merge_entities"], client=client, alias=alias, key=key)
    mentions = await tx.all(SQL["merge_mentions"], client=client, alias=alias, key=key)
    relations = await tx.all(SQL["merge_relations"], client=client, alias=alias, key=key)
    await tx.execute(SQL["drop_mentions"], client=client, alias=alias)
    await tx.execute(SQL["drop_entities"], client=client, alias=alias)
    return AliasMerge(Alias(alias, key), len(mentions), len(relations))


async def remove_alias(tx: Tx, client: str, alias: str) -> Alias:
    """Separates the two names for new chunks; what was merged stays merged until its documents are processed again."""
    await tx.execute(SQL["block_mention_writers"])
    alias = normalise_key(alias)
    key = await tx.value(SQL["remove_alias"], str, client=client, alias=alias)
    if key is None:
        raise Unknown(f"There is no alias “{alias}”: gristmill graph alias list shows all of them.")
    await tx.execute(SQL["forget_extraction_keys"], client=client, key=key)
    return Alias(alias, key)
