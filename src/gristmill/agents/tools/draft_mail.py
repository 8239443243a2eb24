"""The tool that writes a mail without sending it: the draft is kept as a document."""

from gristmill.agents.tools.mails import Mail, describe
from gristmill.agents.tools.model import Tool, ToolContext, ToolResult
from gristmill.agents.tools.write_document import keep_document


async def draft_mail(arguments: Mail, context: ToolContext) -> ToolResult:
    lines = [f"To: {', '.join(arguments.to)}", *([f"Cc: {', '.join(arguments.cc)}"] if arguments.cc else [])]
    text = "\n".join([*lines, f"Subject: {arguments.subject}", "", arguments.text])
    document = await keep_document(context, f"draft:{context.begun.key}", f"Draft: {arguments.subject}", text, "DRAFT")
    return ToolResult(f"The draft is document {document}. It was not sent.", {"document": document})


TOOL = Tool(
    "draft_mail",
    "Write a mail as a draft, which a person can look at. Nothing is sent.",
    Mail,
    draft_mail,
    changes="workspace",
    summarise=lambda arguments: f"Keep a draft {describe(arguments)}",
)
