"""The words of a query in a text."""

from shelf import chunked, placed, searchable

from gristmill.db import Database
from gristmill.knowledge import mark_words
from gristmill.scopes import GLOBAL, Scope


async def shelve(db: Database, *texts: str, scope: Scope = GLOBAL) -> None:
    async with db.transaction() as tx:
        for text in texts:
            for chunk in await chunked(tx, await placed(tx, scope=scope), text):
                await searchable(tx, chunk)


async def marked(db: Database, query: str, text: str, *, scope: Scope = GLOBAL) -> list[str]:
    return [text[start:stop] for start, stop in await mark_words(db, scope, query, text, "en")]


async def test_the_words_of_a_query_are_marked_in_all_their_forms(db: Database) -> None:
    text = "The bearing broke; all bearings of the mill are old."
    await shelve(db, text)
    assert await marked(db, "bearing mills", text) == ["bearing", "bearings", "mill"]


async def test_words_that_say_nothing_are_marked_only_where_a_query_has_no_others(db: Database) -> None:
    await shelve(db, "The bearing broke.")
    assert await marked(db, "the bearing", "The bearing broke.") == ["bearing"]
    assert await marked(db, "the", "The bearing broke.") == ["The"]


async def test_nothing_is_marked_without_a_query_or_where_no_chunk_has_its_words(db: Database) -> None:
    await shelve(db, "The bearing broke.", scope=Scope("acme"))
    assert await marked(db, " \0 ", "The bearing broke.") == []
    assert await marked(db, "bearing", "The bearing broke.", scope=Scope("other")) == []
    assert await marked(db, "bearing", "The bearing broke.", scope=Scope("acme")) == ["bearing"]
