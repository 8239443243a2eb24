"""Keeps of the model's words about a finished run only those that its work and its evidence bear out."""

import re
from collections.abc import Sequence

from gristmill.agents.ask.checking import check_sentence
from gristmill.agents.ask.model import Passage
from gristmill.agents.ask.question import recognise_language
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.values import Value, are_equal, find_values
from gristmill.agents.orchestrator.state import EvidencePassage, OrchestratorState
from gristmill.ids import DocumentId

MARK = re.compile(r" ?(?<!\w)\[\d{1,3}(?:, ?\d{1,3})*\]")  # the number of a passage; only an answer has a list of them


def check_summary(summary: str, state: OrchestratorState, known: Sequence[str]) -> str:
    """Without sentences that a passage contradicts, or whose values stand neither in `known` nor in a passage."""
    plain = drop_marks(summary)
    passages = [_read_passage(one) for one in state.get("evidence", [])]
    values = find_values("\n\n".join([*known, *(one.text for one in passages)]))
    kept, at = "", 0
    for start, stop in find_spans(plain):
        if _is_borne_out(plain[start:stop], passages, values):
            kept += plain[at:stop]
        at = stop
    return kept.strip()


def drop_marks(text: str) -> str:
    return MARK.sub("", text)


def _is_borne_out(sentence: str, passages: Sequence[Passage], values: Sequence[Value]) -> bool:
    if any(not any(are_equal(one, other) for other in values) for one in find_values(sentence)):
        return False
    checked, _ = check_sentence(sentence, (), passages, language=recognise_language(sentence))
    return checked.verdict != "contradicted"


def _read_passage(one: EvidencePassage) -> Passage:
    return Passage(
        number=one["number"],
        document=DocumentId(one["document"]),
        name=one["title"],
        title=one["title"],
        type=None,
        page=one["page"],
        start=one["start"],
        stop=one["stop"],
        heading="",
        language=recognise_language(one["text"]),
        text=one["text"],
        score=0.0,
        chunks=(),
    )
