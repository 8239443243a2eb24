"""BM25 gives the same scores wherever terms lie: fresh, gathered, merged, after deletions and after SIGKILL."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from math import log
from typing import Any

import pytest
from shelf import placed

from gristmill.db import Database, Tx
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import Terms, lexicon
from gristmill.knowledge.letters import FoldTerms, TidyTerms
from gristmill.knowledge.lexicon import FEW, fold_terms, segments_to_merge, tidy_terms
from gristmill.knowledge.room import ROOM
from gristmill.queue import Worker, bind, on, run_schedule
from gristmill.rooms import prepare_rooms
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import Settings

RNG = random.Random(7)
WORDS = [f"w{n}" for n in range(400)]
QUERY = "w60 w90 w300 w399 unheard"  # none of these words stands in so many chunks that it says little


def text() -> list[str]:
    return [WORDS[min(int(RNG.expovariate(0.02)), 399)] for _ in range(RNG.randint(5, 40))]


async def filled(tx: Tx, n: int, scope: Scope = GLOBAL) -> tuple[DocumentId, dict[int, list[str]]]:
    """Chunks with random words."""
    document = await placed(tx, scope=scope)
    texts = [text() for _ in range(n)]
    rows = await tx.all(
        """WITH c AS (INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)
                      SELECT d.scope, d.id, 1, n, 0, 0, 1, '', '' FROM document d, generate_series(1, %(n)s) n
                       WHERE d.id = %(document)s RETURNING id, scope)
           SELECT id, scope FROM c ORDER BY id""",
        n=n,
        document=document,
    )
    for row, one in zip(rows, texts, strict=True):
        terms = Terms(len(one), dict(Counter(one)))
        await tx.execute(
            "INSERT INTO fresh_terms VALUES (%(chunk)s, %(scope)s, 'en', %(length)s, to_jsonb(%(terms)s::json))",
            chunk=row.id,
            scope=row.scope,
            length=terms.length,
            terms=str(terms.counts).replace("'", '"'),
        )
    return document, {row.id: one for row, one in zip(rows, texts, strict=True)}


def expected(texts: dict[int, list[str]], query: str, k1: float = 0.9, b: float = 0.4) -> dict[int, float]:
    """BM25 by the formula of the textbook."""
    mean = sum(map(len, texts.values())) / len(texts)
    found: Counter[int] = Counter()
    for word in query.split():
        df = sum(word in one for one in texts.values())
        idf = log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        for chunk, one in texts.items():
            if tf := one.count(word):
                found[chunk] += idf * tf / (tf + k1 * (1 - b + b * len(one) / mean))
    return found


async def scored(db: Database) -> dict[int, float]:
    async with db.transaction() as tx:
        scopes = [ScopeId(row.id) for row in await tx.all("SELECT id FROM scope")]
        ranking = (await lexicon.look_up(tx, scopes, QUERY, ["en"])).rank()
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


async def scope_of(db: Database) -> ScopeId:
    async with db.transaction() as tx:
        return ScopeId(await tx.value("SELECT id FROM scope"))


async def count(db: Database, table: str) -> int:
    async with db.transaction() as tx:
        return await tx.value(f"SELECT count(*) FROM {table}")


async def test_scores_are_those_of_the_book_fresh_and_gathered(db: Database) -> None:
    async with db.transaction() as tx:
        _, texts = await filled(tx, FEW + 50)
    assert await scored(db) == pytest.approx(expected(texts, QUERY), rel=1e-4)
    await fold_terms(FoldTerms(await scope_of(db)), db=db)
    assert await count(db, "fresh_terms") == 0
    assert await scored(db) == pytest.approx(expected(texts, QUERY), rel=1e-4)
    async with db.transaction() as tx:
        _, more = await filled(tx, 20)
    assert await scored(db) == pytest.approx(expected(texts | more, QUERY), rel=1e-4)


async def test_few_fresh_chunks_are_left_as_they_are(db: Database) -> None:
    async with db.transaction() as tx:
        await filled(tx, 10)
    await fold_terms(FoldTerms(await scope_of(db)), db=db)
    assert (await count(db, "fresh_terms"), await count(db, "segment")) == (10, 0)


async def test_many_folds_leave_few_segments_and_the_same_scores(db: Database) -> None:
    texts: dict[int, list[str]] = {}
    for _ in range(9):
        async with db.transaction() as tx:
            texts |= (await filled(tx, FEW))[1]
        await fold_terms(FoldTerms(await scope_of(db)), db=db)
    assert await count(db, "segment") == 3
    assert await scored(db) == pytest.approx(expected(texts, QUERY), rel=1e-4)


async def test_what_is_deleted_is_not_found_and_its_terms_go(db: Database) -> None:
    async with db.transaction() as tx:
        lost, _ = await filled(tx, FEW)
        _, kept = await filled(tx, FEW)
    scope = await scope_of(db)
    await fold_terms(FoldTerms(scope), db=db)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM document WHERE id = %(id)s", id=lost)
    assert set(await scored(db)) == set(expected(kept, QUERY))
    await fold_terms(FoldTerms(scope), db=db)
    assert await count(db, "gone_chunk") == 0
    # a rewritten segment keeps the mean length only roughly
    assert await scored(db) == pytest.approx(expected(kept, QUERY), rel=0.02)
    async with db.transaction() as tx:
        left = await tx.value("SELECT sum(octet_length(data)) / 9 FROM posting")
    assert left == sum(len(set(one)) for one in kept.values())


async def test_a_segment_of_which_all_is_gone_goes(db: Database) -> None:
    async with db.transaction() as tx:
        lost, _ = await filled(tx, FEW)
    scope = await scope_of(db)
    await fold_terms(FoldTerms(scope), db=db)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM document WHERE id = %(id)s", id=lost)
    await fold_terms(FoldTerms(scope), db=db)
    assert [await count(db, table) for table in ("segment", "posting", "gone_chunk")] == [0, 0, 0]


async def test_a_little_that_is_gone_waits_a_day_at_most(db: Database) -> None:
    async with db.transaction() as tx:
        _, texts = await filled(tx, FEW)
    scope = await scope_of(db)
    await fold_terms(FoldTerms(scope), db=db)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM chunk WHERE id = %(id)s", id=min(texts))
    await fold_terms(FoldTerms(scope), db=db)
    assert await count(db, "gone_chunk") == 1
    async with db.transaction() as tx:
        await tx.execute("UPDATE gone_chunk SET at = at - interval '25 hours'")
    await an_hour_passes(db)
    assert await count(db, "gone_chunk") == 0
    assert min(texts) not in await scored(db)


async def test_what_came_while_a_fold_ran_is_folded_within_the_hour(db: Database) -> None:
    async with db.transaction() as tx:
        for n in (FEW, FEW - 1):
            await filled(tx, n, Scope(f"client {n}"))
    await an_hour_passes(db)
    async with db.transaction() as tx:
        folds = await tx.value("SELECT count(*) FROM task WHERE kind = 'knowledge.fold'")
    assert (folds, await count(db, "segment"), await count(db, "fresh_terms")) == (1, 1, FEW - 1)


async def an_hour_passes(db: Database) -> None:
    """The room's own schedule runs, and everything that it sends is answered."""
    await prepare_rooms([ROOM], db, Settings(), bind(on(TidyTerms, tidy_terms)))
    async with db.transaction() as tx:
        await run_schedule(tx, TidyTerms.kind)
    await idle(db)


async def idle(db: Database) -> None:
    """Runs a worker until all letters are settled."""
    handlers = bind(on(FoldTerms, partial(fold_terms, db=db)), on(TidyTerms, partial(tidy_terms, db=db)))
    await Worker(db, handlers, until_idle=True, maintenance=False).run()


async def test_two_folds_and_a_deletion_at_once_lose_and_double_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        lost, _ = await filled(tx, FEW)
        _, kept = await filled(tx, 3 * FEW)
    scope = await scope_of(db)

    async def delete() -> None:
        async with db.transaction() as tx:
            await tx.execute("DELETE FROM document WHERE id = %(id)s", id=lost)

    folds = (fold_terms(FoldTerms(scope), db=db) for _ in range(2))
    await asyncio.gather(*folds, delete())
    await fold_terms(FoldTerms(scope), db=db)
    assert set(await scored(db)) == set(expected(kept, QUERY))
    async with db.transaction() as tx:
        left = await tx.value("SELECT sum(octet_length(data)) / 9 FROM posting")
    assert left == sum(len(set(one)) for one in kept.values())


FOLDING = """
import asyncio, os, sys
from gristmill.db import Database
from gristmill.knowledge import lexicon
from gristmill.knowledge.letters import FoldTerms

lexicon.MANY = 64

async def main():
    async with Database(sys.argv[1]) as db:
        print(os.getpid(), flush=True)
        await lexicon.fold_terms(FoldTerms(int(sys.argv[2])), db=db)

for _ in sys.stdin:  # each fold in a process of its own, which has nothing to import
    if not os.fork():
        asyncio.run(main())
        os._exit(0)
    os.wait()
    print("gone", flush=True)
"""


async def test_a_fold_that_is_killed_loses_nothing(db: Database, url: str) -> None:
    async with db.transaction() as tx:
        _, texts = await filled(tx, 4 * FEW)
    scope = await scope_of(db)
    wanted = expected(texts, QUERY)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FOLDING, url, str(scope), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdin
    assert program.stdout
    for _ in range(6):
        program.stdin.write(b"\n")
        fold = int(await program.stdout.readline())
        await asyncio.sleep(RNG.random() / 5)
        with suppress(ProcessLookupError):  # it was done before
            os.kill(fold, signal.SIGKILL)
        assert await program.stdout.readline() == b"gone\n"
        assert await scored(db) == pytest.approx(wanted, rel=1e-4)
    program.stdin.close()
    await program.wait()
    await fold_terms(FoldTerms(scope), db=db)
    assert await scored(db) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], []),
        ([300, 300, 300], []),
        ([300, 300, 300, 300], [0, 1, 2, 3]),
        ([300, 2_000, 2_000, 2_000, 2_000, 90_000], [0, 1, 2, 3, 4]),
        ([300, 1_300, 5_000, 20_000], []),
    ],
)
def test_segments_are_merged_when_a_tier_is_full(sizes: list[int], merged: list[int]) -> None:
    assert sorted(segments_to_merge(list(enumerate(sizes)))) == merged


async def test_a_word_that_is_everywhere_does_not_count_beside_others(db: Database) -> None:
    async with db.transaction() as tx:
        _, texts = await filled(tx, 1_100)
        await tx.execute("UPDATE fresh_terms SET terms = terms || '{\"the\": 2}'")
    rare = min(Counter(word for words in texts.values() for word in set(words)).items(), key=lambda one: one[1])[0]
    async with db.transaction() as tx:
        scopes = [ScopeId(await tx.value("SELECT id FROM scope"))]
        both = await lexicon.look_up(tx, scopes, f"the {rare}", ["en"])
        alone = await lexicon.look_up(tx, scopes, "the", ["en"])
        strange = await lexicon.look_up(tx, scopes, "the xyzzy", ["en"])
    assert [word.terms for word in both.words] == [{rare}]
    assert len(alone.rank().chunks) == 1_100
    assert strange.words == []


async def test_a_page_of_words_is_answered_by_the_rarest_wherever_their_terms_lie(db: Database) -> None:
    async with db.transaction() as tx:
        _, texts = await filled(tx, FEW)
        await tx.execute("UPDATE fresh_terms SET terms = terms || '{\"the\": 1}'")
    await fold_terms(FoldTerms(await scope_of(db)), db=db)
    async with db.transaction() as tx:
        _, more = await filled(tx, 20)
        scopes = [ScopeId(await tx.value("SELECT id FROM scope"))]
        page = await lexicon.look_up(tx, scopes, " ".join(["the", *WORDS]), ["en"])
    asked = [term for word in page.words for term in word.terms]
    frequency = Counter(word for words in (texts | more).values() for word in set(words))
    assert len(asked) == lexicon.MOST_WORDS
    assert max(frequency[term] for term in asked) <= sorted(frequency.values())[lexicon.MOST_WORDS - 1]
    ranking = page.rank()
    found = dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
    assert found == pytest.approx(expected(texts | more, " ".join(asked)), rel=1e-4)


async def test_a_word_that_is_everywhere_is_read_terms_where_it_is_all_that_was_asked_for(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 0
    look_up = lexicon._read_terms

    async def counted(*args: Any) -> Any:
        nonlocal times
        times += 1
        return await look_up(*args)

    monkeypatch.setattr(lexicon, "_read_terms", counted)
    async with db.transaction() as tx:
        await filled(tx, 1_100)
        await tx.execute("UPDATE fresh_terms SET terms = terms || '{\"the\": 2}'")
    await fold_terms(FoldTerms(await scope_of(db)), db=db)
    async with db.transaction() as tx:
        alone = await lexicon.look_up(tx, [ScopeId(await tx.value("SELECT id FROM scope"))], "the", ["en"])
    assert len(alone.rank().chunks) == 1_100
    assert times == 1
