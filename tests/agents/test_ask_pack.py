"""The evidence pack: the passages that a model is shown, joined and without repetitions."""

from typing import Any

from gristmill.agents.ask.pack import make_pack
from gristmill.agents.ask.retrieval import Ranked
from gristmill.documents import ChunkSurroundings
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import Hit

FIRST = "Between the Harrow Trust, Aldermoor, and Lindqvist Millwrights.\n\n"
SECOND = "The chair of the Harrow Trust is Margaret Oakes, who signs for it."
PAGE = FIRST + SECOND


def find(document: int, start: int, stop: int) -> Ranked:
    known: dict[str, Any] = dict.fromkeys(Hit.__dataclass_fields__)
    place = {"chunk": ChunkId(document * 1_000 + start), "document": DocumentId(document), "start": start, "stop": stop}
    return Ranked(Hit(**{**known, **place, "page": 1, "name": f"copy-{document}.pdf", "heading": ""}), 1.0)


def pack(*found: Ranked) -> list[tuple[int, str]]:
    around = {
        one.hit.chunk: ChunkSurroundings(one.hit.chunk, one.hit.document, 1, one.hit.start, one.hit.stop, 0, PAGE)
        for one in found
    }
    return [(int(one.document), one.text) for one in make_pack(found, around, most=8, budget=1_000)]


def test_passages_beside_each_other_are_joined() -> None:
    assert pack(find(1, 0, len(FIRST)), find(1, len(FIRST), len(PAGE))) == [(1, PAGE)]


def test_a_copy_of_a_part_of_a_joined_passage_says_nothing_new() -> None:
    whole = find(1, 0, len(FIRST)), find(1, len(FIRST), len(PAGE))
    assert pack(*whole, find(2, 0, len(FIRST)), find(2, len(FIRST), len(PAGE))) == [(1, PAGE)]
