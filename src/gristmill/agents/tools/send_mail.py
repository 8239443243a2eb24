"""The tool that sends a mail."""

from gristmill.agents.tools.mails import Mail, describe, write_mail
from gristmill.agents.tools.model import PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.errors import Refused
from gristmill.settings import MailServer
from gristmill.sources import send_mail as send_by_smtp


def find_server(context: ToolContext) -> MailServer:
    server = context.settings.agents.smtp
    if server is None:
        raise Refused("No mail server is set (agents.smtp): keep a draft instead.")
    return server


async def prepare(arguments: Mail, context: ToolContext) -> PreparedEffect:
    return PreparedEffect({"from": find_server(context).sender})


async def send_mail(arguments: Mail, context: ToolContext) -> ToolResult:
    server = find_server(context)
    message = write_mail(arguments, sender=server.sender, key=context.begun.key)
    await send_by_smtp(server, message, [*arguments.to, *arguments.cc])
    return ToolResult(f"The mail was sent as {message['Message-ID']}.", {"message_id": str(message["Message-ID"])})


TOOL = Tool(
    "send_mail",
    "Send a mail. A person is asked first, unless the policy names every recipient.",
    Mail,
    send_mail,
    changes="outside",
    targets={"to": "recipient", "cc": "recipient"},
    repeatable=False,  # mail servers do not know what they have taken before
    summarise=lambda arguments: f"Send a mail {describe(arguments)}",
    prepare=prepare,
)
