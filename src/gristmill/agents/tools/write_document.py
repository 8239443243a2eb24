"""The tool that keeps a text as a document, where it can be searched."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.documents import index_document


class WriteDocument(Arguments):
    """What is kept."""

    title: str = Field(min_length=1, max_length=300, description="Its title.")
    text: str = Field(min_length=1, max_length=200_000, description="Its text, in Markdown.")


async def write_document(arguments: WriteDocument, context: ToolContext) -> ToolResult:
    """The URN is made of the key: written again, it is the same document."""
    document = await keep_document(context, f"agent:{context.begun.key}", arguments.title, arguments.text, "AGENT")
    return ToolResult(f"It is document {document}.", {"document": document})


async def keep_document(context: ToolContext, urn: str, title: str, text: str, type_: str) -> int:
    return await index_document(
        context.db,
        context.embedders,
        urn,
        text,
        title,
        f"run {context.run.id}",
        knowledge_type=type_,
        scope=context.place,
    )


TOOL = Tool(
    "write_document",
    "Keep a text as a document of this project, where it can be found later.",
    WriteDocument,
    write_document,
    changes="workspace",
    summarise=lambda arguments: f"Keep a document: {arguments.title}.",
)
