"""The tool that searches what is stored: passages by words and by meaning."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult


class SearchKnowledge(Arguments):
    """What is looked for."""

    query: str = Field(min_length=1, max_length=1_000, description="Words or a question.")
    limit: int = Field(default=8, ge=1, le=30, description="How many passages at most.")


async def search_knowledge(arguments: SearchKnowledge, context: ToolContext) -> ToolResult:
    found = await context.search(arguments.query, context.place, limit=arguments.limit)
    if not found:
        return ToolResult("Nothing was found.", {"documents": []})
    parts = [
        f"[{n}] {hit.title or hit.name} (document {hit.document}, page {hit.page})\n{hit.text.strip()}"
        for n, hit in enumerate(found, 1)
    ]
    documents = list(dict.fromkeys(int(hit.document) for hit in found))
    return ToolResult("\n\n".join(parts), {"documents": documents}, f"documents {', '.join(map(str, documents))}")


TOOL = Tool(
    "search_knowledge",
    "Search the documents, mails, pages and records that are stored, and read the best passages.",
    SearchKnowledge,
    search_knowledge,
)
