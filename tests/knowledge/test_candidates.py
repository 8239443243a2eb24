"""Which candidates become hits: scores are absolute, and hits end where the evidence ends."""

from collections.abc import Sequence
from math import sqrt
from struct import pack

import pytest
from shelf import chunked, placed, searchable

from gristmill.db import Database
from gristmill.knowledge import search, vectors
from gristmill.knowledge.candidates import cut_weak, fuse_scores
from gristmill.models import FakeEmbedder
from gristmill.settings import KnowledgeSettings

FAR = 0.25  # the cosine of a chunk that is merely a neighbour


@pytest.mark.parametrize(
    ("words", "meaning", "alpha", "score"),
    [
        (2.0, 0.8, 0.5, 0.65),  # half of the best BM25, and its cosine
        (2.0, None, 0.5, 0.25),
        (2.0, -0.4, 0.5, 0.25),  # an opposite meaning takes nothing away
        (0.0, 0.8, 0.5, 0.4),
        (0.0, 0.2, 0.5, 0.1),  # just at the floor
        (0.0, 0.19, 0.5, None),
        (2.0, 0.1, 1.0, 0.1),  # with a word, the floor does not count
        (0.0, 0.8, 0.0, None),
        (2.0, 0.8, 0.0, 0.5),
    ],
)
def test_a_score_is_the_sum_of_words_and_meaning(
    words: float, meaning: float | None, alpha: float, score: float | None
) -> None:
    scores = fuse_scores({1: words}, 4.0, {} if meaning is None else {1: meaning}, alpha, 0.2)
    assert scores == ({} if score is None else {1: pytest.approx(score)})


@pytest.mark.parametrize(
    ("share", "bm25", "similar", "left"),
    [
        (0.6, {1: 3.0, 2: 0.0, 3: 0.0}, {1: 0.7, 2: FAR, 3: FAR}, [1]),  # one right hit, and its neighbours
        (0.6, {1: 3.0, 2: 0.1, 3: 0.0}, {1: 0.7, 2: FAR, 3: FAR}, [1, 2]),  # a word in common is evidence
        (0.6, {1: 0.0, 2: 0.0, 3: 0.0}, {1: 0.7, 2: 0.42, 3: 0.41}, [1, 2]),  # a share of the best
        (0.6, {1: 0.0, 2: 0.0, 3: 0.0}, {1: 0.3, 2: 0.25, 3: 0.2}, [1, 2, 3]),  # all are equally vague
        (0.6, {1: 3.0, 2: 0.0}, {1: FAR, 2: 0.7}, [1, 2]),  # the best in meaning need not be the best hit
        (0.6, {1: 3.0, 2: 2.0}, {}, [1, 2]),  # by words alone
        (0.6, {}, {}, []),
        (0.0, {1: 3.0, 2: 0.0}, {1: 0.7, 2: FAR}, [1, 2]),  # nothing is cut
        (1.0, {1: 3.0, 2: 0.0, 3: 0.0}, {1: 0.5, 2: 0.7, 3: 0.69}, [1, 2]),
    ],
)
def test_a_hit_without_a_word_in_common_needs_a_share_of_the_best_meaning(
    share: float, bm25: dict[int, float], similar: dict[int, float], left: list[int]
) -> None:
    scores = fuse_scores(bm25, 4.0, similar, 0.5, 0.0)
    kept = cut_weak(scores, bm25, similar, share)
    assert kept == {chunk: scores[chunk] for chunk in left}


class Neighbourly(FakeEmbedder):
    """Its vectors of all texts have much in common, as those of a real model have."""

    dimensions = 3

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [pack("<3f", *self._point(text)) for text in texts]

    def _point(self, text: str) -> tuple[float, float, float]:
        """The cosine to a mill is 1, 0.9 or 0.4."""
        if "mill" in text:
            return 1.0, 0.0, 0.0
        return (0.9, sqrt(1 - 0.9**2), 0.0) if "grinder" in text else (0.4, 0.0, sqrt(1 - 0.4**2))


@pytest.mark.parametrize(("share", "found"), [(0.6, 2), (0.0, 4)])
async def test_a_question_with_two_right_hits_finds_two(db: Database, share: float, found: int) -> None:
    embedder = Neighbourly()
    async with db.transaction() as tx:
        model = await vectors.register(tx, embedder)
        for text in ("A mill stands there.", "Every grinder is loud.", "Bread is baked.", "Rain falls in spring."):
            for chunk in await chunked(tx, await placed(tx), text):
                await searchable(tx, chunk, model=model.id, embedder=embedder)
    hits = await search(db, embedder, "mill", settings=KnowledgeSettings(meaning_share=share))
    assert len(hits) == found
    assert [hit.text for hit in hits[:2]] == ["A mill stands there.", "Every grinder is loud."]
