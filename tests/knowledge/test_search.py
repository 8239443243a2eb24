"""Search by words and by meaning: the best hit comes first, and no hit ever comes from another client."""

import asyncio
import random
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import pytest
from shelf import chunked, placed, searchable

from gristmill.db import Database, Tx
from gristmill.errors import Refused, Transient
from gristmill.ids import DocumentId
from gristmill.knowledge import Chunk, search, vectors
from gristmill.knowledge.search import FAN, spread_over_sources
from gristmill.knowledge.snippets import FAITHFUL, Highlighter, snippet_of
from gristmill.knowledge.terms import forms, query_words
from gristmill.models import FakeEmbedder
from gristmill.models.embedding.tokens import load_tokenizer
from gristmill.scopes import GLOBAL, Scope

ACME, MILL, OVEN, OTHER = Scope("acme"), Scope("acme", "mill"), Scope("acme", "oven"), Scope("other")


async def written(
    tx: Tx, text: str, *, scope: Scope = GLOBAL, embedder: FakeEmbedder | None = None, **document: object
) -> list[Chunk]:
    """A document that can be searched."""
    found = await chunked(tx, await placed(tx, scope=scope, **document), text)  # pyright: ignore[reportArgumentType]
    model = await vectors.register(tx, embedder) if embedder else None
    for chunk in found:
        await searchable(tx, chunk, model=model.id if model else None, embedder=embedder)
    return found


class Down(FakeEmbedder):
    """An endpoint that does not answer."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        raise Transient("The endpoint does not answer.")


async def test_a_chunk_is_found_by_words_and_by_meaning_and_says_why(db: Database) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        (invoice,) = await written(
            tx, "# Terms\n\nThe invoices must be paid within 30 days.", embedder=embedder, name="a.md", title="Contract"
        )
        await written(tx, "Bread is baked in the oven every morning.", embedder=embedder)
    hits = await search(db, embedder, "paying an invoice")
    first = hits[0]
    assert hits.note is None
    assert first.chunk == invoice.id
    assert (first.name, first.title, first.type, first.page) == ("a.md", "Contract", "markdown", 1)
    assert (first.start, first.stop) == (invoice.start, invoice.stop)
    assert first.lexical > 0
    assert first.similarity is not None
    assert first.score == pytest.approx(0.5 * max(first.similarity, 0) + 0.5 * first.lexical, abs=1e-3)
    marked = [first.snippet.text[start:stop] for start, stop in first.snippet.highlights]
    assert marked == ["invoices"]  # by its stem


@pytest.mark.parametrize("sign", "\\+?.-=#&%")
async def test_whatever_sign_stands_in_a_word_is_no_pattern(db: Database, sign: str) -> None:
    async with db.transaction() as tx:
        await written(tx, f"The account is z{sign}adams, and nothing else.")
    (hit,) = await search(db, None, f"z{sign}adams")
    marked = [hit.snippet.text[start:stop] for start, stop in hit.snippet.highlights]
    assert marked == [f"z{sign}adams"]


@pytest.mark.parametrize("query", ["水", "冷 水", "水は"])
async def test_a_character_of_a_script_without_blanks_is_found_and_marked(db: Database, query: str) -> None:
    async with db.transaction() as tx:
        (water,) = await written(tx, "この水は冷たい")
        await written(tx, "このパンは温かい")
    hits = await search(db, None, query)
    assert [hit.chunk for hit in hits] == [water.id]
    assert any("水" in hits[0].snippet.text[start:stop] for start, stop in hits[0].snippet.highlights)


@pytest.mark.parametrize(
    ("language", "asked", "written"),
    [
        ("en", "die", "dying"),
        ("de", "Überweisung", "Ueberweisung"),
        ("nl", "werk", "gewerkt"),
        (None, "case", "camelCase"),
    ],
)
def test_a_word_is_marked_however_far_its_stem_is_from_it(language: str | None, asked: str, written: str) -> None:
    terms = {term for word in query_words(asked, [language]) for term in word.terms}
    snippet = snippet_of(f"nothing {written} nothing", language, Highlighter(terms))
    assert [snippet.text[start:stop].lower() in written.lower() for start, stop in snippet.highlights] == [True]


@pytest.mark.parametrize("language", FAITHFUL)
def test_words_of_a_faithful_language_begin_in_one_of_the_ways_of_their_stems(language: str | None) -> None:
    text = " ".join(word for word in load_tokenizer().get_vocab() if word.isalpha())
    for word in text.split():
        for term in forms(word, language):
            likely = Highlighter([term])._likely_words(word, language)  # pyright: ignore[reportPrivateUsage] no other result shows which words it leaves out
            assert list(likely) == [(0, word)], (word, term)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("The Queue’s tasks: façade, TASK and multitask.", ["tasks", "façade", "TASK"]),
        ("Tasks\n\n  of   a\tfacade", ["Tasks", "facade"]),
        ("x" * 400 + " \n task \n\n façade " + "y" * 400, ["task", "façade"]),
        ("nothing", []),
    ],
)
def test_marks_stand_where_the_words_are_whatever_is_between_them(text: str, marked: list[str]) -> None:
    found = snippet_of(text, "en", Highlighter(["task", "facad"]))
    assert [found.text[start:stop] for start, stop in found.highlights] == marked
    assert "  " not in found.text


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
async def test_what_does_not_match_at_all_is_no_hit(db: Database, alpha: float) -> None:
    class Opposite(FakeEmbedder):
        """Its vector of a question points away from those of all texts."""

        async def embed_question(self, text: str) -> bytes:
            (vector,) = await self.embed(["Bread number 0 is baked in an oven."])
            return array("f", [-number for number in array("f", vector)]).tobytes()

    embedder = Opposite()
    async with db.transaction() as tx:
        for n in range(5):
            await written(tx, f"Bread number {n} is baked in an oven.", embedder=embedder)
    assert await search(db, embedder, "zzyzx qwfpgj", alpha=alpha) == []
    found = await search(db, embedder, "oven zzyzx", alpha=0.5)
    assert [hit.score for hit in found] == [pytest.approx(0.5 * hit.lexical, abs=1e-3) for hit in found]
    assert len(found) == 5  # by their word alone: an opposite meaning takes nothing away


@pytest.mark.parametrize("alpha", [0.5, 1.0])
async def test_what_is_merely_the_nearest_is_no_hit_without_one_of_the_words(db: Database, alpha: float) -> None:
    class Strict(FakeEmbedder):
        """Knows other words for what is baked."""

        floor = 0.6

        async def embed(self, texts: Sequence[str]) -> list[bytes]:
            meant = {"loaf": "Bread is baked in an oven.", "crust": "oven. bread"}
            return await super().embed([meant.get(text, text) for text in texts])

    async with db.transaction() as tx:
        (bread,) = await written(tx, "Bread is baked in an oven.", embedder=Strict())
    for query in ("loaf", "crust bread"):
        assert [hit.chunk for hit in await search(db, Strict(), query, alpha=alpha)] == [bread.id]
    assert await search(db, Strict(), "crust", alpha=alpha) == []
    assert len(await search(db, FakeEmbedder(), "bread", alpha=alpha)) == 1


async def test_words_alone_when_there_is_no_vector_or_no_embedder_or_it_is_down(db: Database) -> None:
    async with db.transaction() as tx:
        (chunk,) = await written(tx, "The mill grinds slowly.")
    none_yet = await search(db, FakeEmbedder(), "mill")
    assert none_yet.note
    assert "No chunk has a vector" in none_yet.note
    async with db.transaction() as tx:
        await vectors.register(tx, FakeEmbedder())
    for embedder, reason in ((None, "the embedder is none"), (Down(), "does not answer")):
        hits = await search(db, embedder, "mill", alpha=1.0)
        assert [hit.chunk for hit in hits] == [chunk.id]
        assert hits[0].similarity is None
        assert reason in (hits.note or "")
    assert (await search(db, None, "mill", alpha=0)).note is None


class Pensive(FakeEmbedder):
    """An embedder that does not answer before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may, self.answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def embed_question(self, text: str) -> bytes:
        self.asked.set()
        await self.may.wait()
        self.answered.set()
        return await super().embed_question(text)


async def test_nothing_of_the_database_is_held_while_an_endpoint_thinks(db: Database) -> None:
    embedder = Pensive()
    async with db.transaction() as tx:
        (chunk,) = await written(tx, "The mill grinds slowly.", embedder=embedder)
    search_ = asyncio.create_task(search(db, embedder, "mill"))
    await embedder.asked.wait()

    async def held() -> int:
        async with db.transaction() as tx:
            return await tx.value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND state <> 'idle' AND backend_type = 'client backend'"
            )

    while await held():  # noqa: ASYNC110 the words are still looked up, and nobody says when they are
        await asyncio.sleep(0.01)
    embedder.may.set()
    assert [(hit.chunk, hit.similarity is None) for hit in await search_] == [(chunk.id, False)]


async def test_a_search_that_nobody_waits_for_any_longer_does_not_end_the_model(db: Database) -> None:
    embedder = Pensive()
    async with db.transaction() as tx:
        await written(tx, "The mill grinds slowly.", embedder=embedder)
    search_ = asyncio.create_task(search(db, embedder, "mill"))
    await embedder.asked.wait()
    search_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search_
    embedder.may.set()
    await embedder.answered.wait()


async def test_the_embedder_that_made_the_vectors_is_the_one_that_is_asked(db: Database) -> None:
    class Other(FakeEmbedder):
        name = "other"

    ours, other = FakeEmbedder(), Other()
    async with db.transaction() as tx:
        await written(tx, "The mill grinds slowly.", embedder=ours)
    ours.embedded.clear()
    assert (await search(db, [other, ours], "mill")).note is None
    assert (ours.embedded, other.embedded) == (["mill"], [])
    assert "the embedder is other" in ((await search(db, other, "mill")).note or "")
    assert other.embedded == []


async def test_an_embedder_that_does_not_answer_is_not_waited_for(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gristmill.knowledge.question.PATIENCE", 0.01)
    embedder = Pensive()
    async with db.transaction() as tx:
        (chunk,) = await written(tx, "The mill grinds slowly.", embedder=embedder)
    hits = await search(db, embedder, "mill")
    assert ([hit.chunk for hit in hits], hits[0].similarity) == ([chunk.id], None)
    assert "did not answer in time" in (hits.note or "")


@pytest.mark.parametrize(
    "query",
    ["", "   ", "?!…", "the of and", "word " * 10_000, '"unclosed', "%(x)s '; DROP TABLE chunk; --", "\\", "a" * 9_999],
)
async def test_strange_queries_are_answered(db: Database, query: str) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        await written(tx, "The word of the mill and the oven.", embedder=embedder)
    hits = await search(db, embedder, query)
    assert len(hits) <= 1


async def test_nonsense_is_refused(db: Database) -> None:
    for wrong in ({"alpha": 2}, {"limit": 0}, {"expand": 3}, {"after": datetime(2026, 1, 1)}):  # noqa: DTZ001 meant so
        with pytest.raises(Refused):
            await search(db, None, "mill", **wrong)
    for unwritable in ("mi\0ll", "mi\ud800ll"):
        with pytest.raises(Refused, match="half a character"):
            await search(db, None, unwritable)


async def test_what_is_quoted_comes_first(db: Database) -> None:
    async with db.transaction() as tx:
        await written(tx, "Stone mill, stone stone mill mill.")
        (exact,) = await written(tx, "In the valley there was once upon a time an old mill made of\nstone and wood.")
    assert (await search(db, None, "mill stone"))[0].chunk != exact.id
    quoted = await search(db, None, '"mill made of stone"', alpha=0)
    assert (quoted[0].chunk, quoted.note) == (exact.id, None)
    nowhere = await search(db, None, '"stone made of mill"', alpha=0)
    assert len(nowhere) == 2
    assert nowhere.note == "No hit has what is quoted, word for word."


async def test_what_is_quoted_is_said_to_be_found_where_only_an_older_version_has_it(db: Database) -> None:
    async with db.transaction() as tx:
        (old,) = await written(tx, "The mill made of stone.", urn="file:///a", version=1)
        (new,) = await written(tx, "The mill, and what it was made of: stone, once.", urn="file:///a", version=2)
    hits = await search(db, None, '"mill made of stone"', alpha=0)
    assert [hit.chunk for hit in hits] == [new.id, old.id]
    assert hits.note is None


async def test_filters_by_type_and_date(db: Database) -> None:
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        for n in range(150):
            await written(tx, f"The mill, note {n}.", embedder=embedder, written_at=old)
        (pdf,) = await written(
            tx, "A mill in a longer text about other things.", embedder=embedder, kind="pdf", written_at=old
        )
        (late,) = await written(tx, "A mill in a longer text about late things.", embedder=embedder, written_at=new)
    for alpha in (0.0, 0.5, 1.0):
        assert [hit.chunk for hit in await search(db, embedder, "mill", alpha=alpha, type="pdf")] == [pdf.id]
        after = datetime(2025, 1, 1, tzinfo=UTC)
        assert [hit.chunk for hit in await search(db, embedder, "mill", alpha=alpha, after=after)] == [late.id]


# --- sources


async def test_no_document_crowds_out_the_others_and_copies_fall_behind(db: Database) -> None:
    sentence = "The mill grinds {} and more {} of it. " + "Filler stands here for length. " * 30
    async with db.transaction() as tx:
        await written(
            tx, "\n\n".join(f"# Part {n}\n\n" + sentence.format(f"mill{n}", n) for n in range(8)), name="long"
        )
        (short,) = await written(tx, "One mill among many other words of a little note.", name="short")
        (copy,) = await written(tx, "One mill among many other words of a little note.", name="copy")
    names = [hit.name for hit in await search(db, None, "mill", limit=6)]
    assert names[:4].count("long") == 3
    assert set(names[:4]) >= {"long"}
    assert ("short" in names[:4]) != ("copy" in names[:4])
    assert short.hash == copy.hash


async def test_others_are_found_behind_however_many_of_one_document_are_better(db: Database) -> None:
    sentence = "The mill, the mill and mill number {}. " + "Filler stands here for length. " * 30
    async with db.transaction() as tx:
        await written(tx, "\n\n".join(f"# Part {n}\n\n" + sentence.format(n) for n in range(20)), name="long")
        for n in range(3):
            await written(
                tx, f"Only once a mill in the {n} notes. " + f"Other words of note {n}. " * 30, name=f"note{n}"
            )
    hits = await search(db, None, "mill", limit=6)
    assert sorted(hit.name for hit in hits) == ["long"] * 3 + ["note0", "note1", "note2"]


async def test_an_older_version_yields_to_the_newer(db: Database) -> None:
    async with db.transaction() as tx:
        (old,) = await written(tx, "mill mill mill, the old words", urn="file:///a", version=1)
        (new,) = await written(
            tx, "The mill, in the new words of a longer text than before.", urn="file:///a", version=2
        )
        (other,) = await written(tx, "Something that has a mill, too, and many other words besides that.")
    assert [hit.chunk for hit in await search(db, None, "mill")][-1] == old.id
    assert {hit.chunk for hit in await search(db, None, "mill")} == {old.id, new.id, other.id}


@pytest.mark.parametrize(("limit", "between"), [(1, 0), (10, 16)])
async def test_an_older_version_yields_to_one_that_is_found_far_behind_it(
    db: Database, limit: int, between: int
) -> None:
    async with db.transaction() as tx:
        (old,) = await written(tx, "mill mill mill mill mill", urn="file:///a", version=1)
        for n in range(between):
            await written(tx, f"The mill and the mill of number {n} and {n + 100} and {n + 200}.")
        (new,) = await written(
            tx, "The mill, in the new words of a text so much longer than the one before.", urn="file:///a", version=2
        )
    found = [hit.chunk for hit in await search(db, None, "mill", limit=limit)]
    assert old.id not in found
    assert limit > 1 or found == [new.id]


class Found(NamedTuple):
    """The columns of a row that are compared."""

    id: int
    document: int
    client: str
    project: str
    urn: str
    version: int
    text: str
    record: int | None = None


@pytest.mark.parametrize("where", [0, 25, 90])
@pytest.mark.parametrize(("others", "repeats"), [(1, True), (5, True), (6, False), (40, False)])
def test_what_has_nine_of_ten_words_in_common_with_another_repeats_it(where: int, others: int, repeats: bool) -> None:
    words = [f"w{n}" for n in range(100)]
    changed = words[:where] + [f"x{n}" for n in range(others)] + words[where + others :]
    changed = changed[:100]
    common = len(set(words) & set(changed))
    assert (common >= 0.9 * len(set(words) | set(changed))) is repeats  # 95 of 105, or 94 of 106
    rows = [Found(id, id, "", "", str(id), 1, " ".join(text)) for id, text in enumerate((words, changed))]
    assert [row.id for row in spread_over_sources(rows, 2)[1]] == ([1] if repeats else [])


def test_what_repeats_another_is_found_among_a_thousand_as_among_two() -> None:
    rng = random.Random(7)
    texts = [" ".join(rng.choices([f"w{n}" for n in range(3_000)], k=130)) for _ in range(1_000)]
    texts += [text.replace(text.split()[0], "another") for text in texts[::50]]
    rows = [Found(id, id, "", "", str(id), 1, text) for id, text in enumerate(texts)]
    first, behind = spread_over_sources(rows, 2_000)
    assert [row.id for row in behind] == list(range(1_000, 1_020))
    assert len(first) == 1_000


async def test_a_quoted_phrase_is_found_behind_many_that_have_its_words(db: Database) -> None:
    async with db.transaction() as tx:
        for n in range(150):
            await written(tx, f"mill of stone, mill of stone, mill of stone {n}")
        (phrase,) = await written(tx, "Once there was, among so many other things, one stone mill at the river side.")
    hits = await search(db, None, '"stone mill"', limit=3)
    assert hits[0].chunk == phrase.id


# --- clients


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("expand", [0, 2])
@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (GLOBAL, {GLOBAL}),
        (ACME, {GLOBAL, ACME, MILL, OVEN}),
        (MILL, {GLOBAL, ACME, MILL}),
        (OTHER, {GLOBAL, OTHER}),
        (Scope("nobody"), {GLOBAL}),
    ],
)
async def test_no_search_crosses_clients(
    db: Database, alpha: float, expand: int, scope: Scope, seen: set[Scope]
) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        for one in (GLOBAL, ACME, MILL, OVEN, OTHER):
            for n in range(3):
                (chunk,) = await written(
                    tx, f"The secret mill {n} of {one}.", scope=one, embedder=embedder, kind=f"t{n}"
                )
                await named(tx, chunk, "person::ann", f"thing::{n}")
    hits = await search(db, embedder, "secret mill", scope, alpha=alpha, expand=expand, limit=100)
    assert {Scope(hit.client, hit.project) for hit in hits} == seen
    hits = await search(db, embedder, "secret mill", scope, alpha=alpha, type="t1", expand=expand, limit=100)
    assert {Scope(hit.client, hit.project) for hit in hits} <= seen
    assert {hit.type for hit in hits} == {"t1"}


# --- the graph


async def named(tx: Tx, chunk: Chunk, *keys: str) -> None:
    """Makes the chunk name these nodes, each related to the next."""
    for key in keys:
        await tx.execute(
            """INSERT INTO mention (chunk, key, scope, type, name)
               VALUES (%(chunk)s, %(key)s, %(scope)s, 'thing', %(key)s)""",
            chunk=chunk.id,
            key=key,
            scope=chunk.scope,
        )
    for source, target in pairwise(keys):
        await tx.execute(
            """INSERT INTO relation (chunk, source, type, target, scope, extracted)
               VALUES (%(chunk)s, %(source)s, 'knows', %(target)s, %(scope)s, true)""",
            chunk=chunk.id,
            source=source,
            target=target,
            scope=chunk.scope,
        )


async def test_the_graph_adds_what_is_related_marked_as_such_and_never_ahead(db: Database) -> None:
    async with db.transaction() as tx:
        (hit,) = await written(tx, "Ann owns the mill.")
        (near,) = await written(tx, "Ann knows Bob.")
        (middle,) = await written(tx, "Bob knows Carl.")
        (far,) = await written(tx, "Carl sells flour.")
        (stranger,) = await written(tx, "Dora sleeps.")
        await named(tx, hit, "person::ann")
        await named(tx, near, "person::ann", "person::bob")
        await named(tx, middle, "person::bob", "person::carl")
        await named(tx, far, "person::carl")
        await named(tx, stranger, "person::dora")
    plain = await search(db, None, "mill")
    one = await search(db, None, "mill", expand=1)
    two = await search(db, None, "mill", expand=2)
    assert [found.chunk for found in plain] == [hit.id]
    assert [(found.chunk, found.via) for found in one] == [
        (hit.id, ()),
        (near.id, ("person::bob",)),
        (middle.id, ("person::bob",)),
    ]
    assert {found.chunk for found in two} == {hit.id, near.id, middle.id, far.id}
    assert two[-1].chunk == far.id
    assert two[0].score > two[1].score > two[-1].score


async def test_the_graph_is_followed_by_the_aliases_of_the_client(db: Database) -> None:
    async with db.transaction() as tx:
        (hit,) = await written(tx, "Ann owns the mill.", scope=ACME)
        (near,) = await written(tx, "Annie knows Bob.")
        await named(tx, hit, "person::ann")
        await named(tx, near, "person::annie", "person::bob")
        await tx.execute("INSERT INTO alias VALUES ('acme', 'person::annie', 'person::ann')")
    found = await search(db, None, "mill", ACME, expand=1)
    assert [(one.chunk, one.via) for one in found] == [(hit.id, ()), (near.id, ("person::bob",))]


@pytest.mark.parametrize("only", [{"type": "mail"}, {"after": datetime(2026, 1, 1, tzinfo=UTC)}])
async def test_a_filter_leaves_what_is_related_and_fits_however_much_does_not(
    db: Database, only: dict[str, Any]
) -> None:
    old, new = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    async with db.transaction() as tx:
        (hit,) = await written(tx, "Ann owns the mill.", kind="mail", written_at=new)
        (fitting,) = await written(tx, "Bob sells flour.", kind="mail", written_at=new)
        await named(tx, hit, "person::ann")
        await named(tx, fitting, "person::bob")
        for n in range(FAN + 10):
            (other,) = await written(tx, f"Bob sleeps for {n} hours.", written_at=old)
            await named(tx, other, "person::bob", "person::ann")
    found = await search(db, None, "mill", expand=1, limit=5, **only)
    assert [one.chunk for one in found] == [hit.id, fitting.id]


async def test_as_many_hits_are_given_as_are_asked_for(db: Database) -> None:
    async with db.transaction() as tx:
        for n in range(150):
            await written(tx, f"The mill has wheel {n}{n}, stone {n * 7} and sack {n * 13}.")
    assert len(await search(db, None, "mill", alpha=0, limit=140)) == 140


async def test_a_model_that_changed_behind_its_name_leaves_the_words(db: Database) -> None:
    class Shorter(FakeEmbedder):
        dimensions = 128

        async def embed_question(self, text: str) -> bytes:
            return (await super().embed_question(text))[: 128 * 4]

    async with db.transaction() as tx:
        await written(tx, "The mill grinds.", embedder=FakeEmbedder())
    found = await search(db, Shorter(), "mill")
    assert [hit.similarity for hit in found] == [None]
    assert found.note
    assert "128 numbers" in found.note


# --- recall


def unit(rng: random.Random) -> bytes:
    numbers = [rng.gauss(0, 1) for _ in range(384)]
    length = sqrt(sum(one * one for one in numbers))
    return array("f", [one / length for one in numbers]).tobytes()


async def test_a_narrow_filter_loses_no_recall(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a hundred passes the filter: the index must go on until it has found enough of them."""
    monkeypatch.setattr(vectors, "FEW", 0)  # otherwise so few would be compared one by one
    rng = random.Random(3)
    async with db.transaction() as tx:
        model = await vectors.register(tx, FakeEmbedder())
        many, rare = await placed(tx), await placed(tx, kind="pdf")
        scope = await tx.value("SELECT id FROM scope")
        async with index_at_last(tx):
            await bare(tx, many, 2_970, model.id, rng)
            await bare(tx, rare, 30, model.id, rng)
    async with db.transaction() as tx:
        await tx.execute("ANALYZE embedding")
        await tx.execute("SET LOCAL enable_sort = off")  # makes the planner take the index, as it does with many rows
        query, only = unit(rng), vectors.Filter(types=("pdf",))
        found = await vectors.find_nearest(tx, model, query, [scope], 3_000, only, 10)
        exact = await exactly(tx, rare, query)
    assert len(found) == 10
    assert len(set(found) & exact) >= 9


async def test_all_of_ours_are_found_when_the_index_gives_up_among_the_vectors_of_others(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MOST_SCANNED", 200)
    monkeypatch.setattr(vectors, "FEW", 0)
    rng = random.Random(3)
    async with db.transaction() as tx:
        model = await vectors.register(tx, FakeEmbedder())
        others, ours = await placed(tx), await placed(tx, scope=Scope("acme"))
        async with index_at_last(tx):
            await bare(tx, others, 2_940, model.id, rng)
            await bare(tx, ours, 60, model.id, rng)
    async with db.transaction() as tx:
        await tx.execute("ANALYZE embedding")
        await tx.execute("SET LOCAL enable_sort = off")
        query, scopes = unit(rng), [await tx.value("SELECT id FROM scope WHERE client = 'acme'")]
        found = await vectors.find_nearest(tx, model, query, scopes, 5_000, vectors.Filter(), 100)
    assert len(found) == 60


async def exactly(tx: Tx, document: DocumentId, query: bytes) -> set[int]:
    rows = await tx.all(
        """SELECT e.chunk FROM embedding e JOIN chunk c ON c.id = e.chunk WHERE c.document = %(document)s
            ORDER BY e.vector <=> %(near)s::vector LIMIT 10""",
        document=document,
        near=vectors.vector_text(query),
    )
    return {row.chunk for row in rows}


@asynccontextmanager
async def index_at_last(tx: Tx) -> AsyncIterator[None]:
    """Make the index when all vectors are there: to add thousands of them one by one takes several times as long."""
    find = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'embedding' AND indexdef LIKE '%%hnsw%%'"
    (index,) = await tx.all(find)
    await tx.execute(f"DROP INDEX {index.indexname}")  # pyright: ignore[reportArgumentType]
    yield
    await tx.execute(index.indexdef)


async def bare(tx: Tx, document: DocumentId, n: int, model: int, rng: random.Random) -> None:
    rows = await tx.all(
        """INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)
           SELECT d.scope, d.id, 1, n, 0, 0, 1, '', '' FROM document d, generate_series(1, %(n)s) n
            WHERE d.id = %(document)s RETURNING id, scope""",
        n=n,
        document=document,
    )
    for row in rows:
        await tx.execute(
            "INSERT INTO embedding (model, chunk, scope, vector) VALUES (%(model)s, %(chunk)s, %(scope)s, %(vector)s)",
            model=model,
            chunk=row.id,
            scope=row.scope,
            vector=vectors.vector_text(unit(rng)),
        )
