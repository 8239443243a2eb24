"""What answers questions in one process: the LLM, the answerer and the conversations."""

from gristmill.agents.ask.answering import Answerer
from gristmill.agents.ask.talking import Talker
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.models import RouterLlm, hide_credentials
from gristmill.qualifier import RequestNotes
from gristmill.settings import Settings


class AskService:
    """Opened with the first question; `close` ends the answers that are being written."""

    def __init__(self, db: Database, settings: Settings, finder: Finder) -> None:
        self.db = db
        self.settings = settings
        self.finder = finder
        model = settings.ask.model or settings.llm.model
        self._llm = RouterLlm(settings.llm, session="ask") if model else None
        where = hide_credentials(settings.llm.url)
        note = RequestNotes(db, "ask").note_request
        self.answerer = Answerer(db, finder, settings.ask, self._llm, model, note, where=where)
        self.talker = Talker(db, self.answerer, self._llm, turns=settings.ask.turns)

    async def close(self) -> None:
        await self.talker.close()
        if self._llm is not None:
            await self._llm.close()
