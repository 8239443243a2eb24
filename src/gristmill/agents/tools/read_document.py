"""The tool that reads a stored document."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.documents import load_one, load_pages
from gristmill.ids import DocumentId

MOST_PAGES = 20


class ReadDocument(Arguments):
    """Which document, and which pages."""

    document: int = Field(ge=1, le=2**63 - 1, description="Its number.")
    first_page: int = Field(default=1, ge=1, description="Where to begin.")
    pages: int = Field(default=5, ge=1, le=MOST_PAGES, description="How many pages at most.")


async def read_document(arguments: ReadDocument, context: ToolContext) -> ToolResult:
    id_ = DocumentId(arguments.document)
    async with context.db.reading(seen_from=context.place) as tx:
        found = await load_one(tx, id_)
        pages = await load_pages(tx, id_, after=arguments.first_page - 1, limit=arguments.pages)
    text = "\n\n".join(f"--- page {page.number}\n{page.text}" for page in pages)
    return ToolResult(text or "It has no such page.", {}, f"document {id_} ({found.name})")


TOOL = Tool("read_document", "Read pages of a stored document as Markdown.", ReadDocument, read_document)
