"""The tool that writes a fact down, with the words of a stored document that show it."""

from pydantic import Field

from gristmill.agents.memory import FactEvidence, keep_fact
from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.ids import DocumentId


class NoteFact(Arguments):
    """What is so, and where it stands."""

    sentence: str = Field(min_length=1, max_length=1_000, description="The fact, in one sentence.")
    document: int = Field(ge=1, le=2**63 - 1, description="The number of the document that shows it.")
    page: int = Field(default=1, ge=1, description="The page on which the words stand.")
    quote: str = Field(min_length=8, max_length=2_000, description="The words that show it, exactly as they stand.")


async def note_fact(arguments: NoteFact, context: ToolContext) -> ToolResult:
    """The URN is made of the key: written again, it is the same fact."""
    evidence = FactEvidence(DocumentId(arguments.document), arguments.page, arguments.quote)
    urn = f"fact:{context.begun.key}"
    document = await keep_fact(context.db, context.embedders, context.run, urn, arguments.sentence, evidence)
    return ToolResult(f"The fact is document {document}. It goes when its evidence goes.", {"document": document})


TOOL = Tool(
    "note_fact",
    "Write a fact down with the exact words of a stored document that show it; it can be found later.",
    NoteFact,
    note_fact,
    changes="workspace",
    summarise=lambda arguments: f"Write a fact down: {arguments.sentence}",
)
