"""The room of knowledge: keeps the terms in order, and gives every chunk a vector of the model in the settings."""

from functools import partial

from gristmill.db import Tx
from gristmill.knowledge.checks import EMPTY_EXTRACTIONS, check_extraction, find_empty_extractions
from gristmill.knowledge.letters import FillVectors, FoldTerms, TidyTerms
from gristmill.knowledge.lexicon import fold_terms, tidy_terms
from gristmill.knowledge.vectors import choose_model, fill_vectors
from gristmill.models import get_embedder_name
from gristmill.queue import Handler, on
from gristmill.rooms import RecurringLetter, Room, Tools, Watch
from gristmill.settings import Settings

HOURLY = "17 * * * *"


def bind_handlers(tools: Tools) -> list[Handler]:
    db, embedder = tools.db, tools.models.embedder
    return [
        on(FoldTerms, partial(fold_terms, db=db)),
        on(TidyTerms, partial(tidy_terms, db=db)),
        on(FillVectors, partial(fill_vectors, db=db, embedder=embedder)),
    ]


async def follow_settings(tx: Tx, settings: Settings) -> None:
    """Vectors of any other model than that of the settings are replaced in the background."""
    await choose_model(tx, get_embedder_name(settings.embedding))


ROOM = Room(
    name="knowledge",
    letters=(FoldTerms, TidyTerms, FillVectors),
    handlers=bind_handlers,
    prepare=follow_settings,
    schedules=(RecurringLetter(TidyTerms.kind, TidyTerms(), HOURLY),),
    checks=(check_extraction,),
    alarms=(Watch((EMPTY_EXTRACTIONS,), find_empty_extractions),),
)
