"""What a mail is to the indexer: its URN, its thread, whether we wrote it ourselves."""

from dataclasses import replace
from typing import Any

from gristmill.documents import summarize_mail
from gristmill.sources.model import Description, Fetched

# The names of folders of mails that we sent, where the server does not say by a flag which one it is.
SENT_FOLDERS = frozenset(
    {"sent", "sent items", "sent messages", "sent mail", "gesendet", "gesendete elemente", "gesendete objekte"}
    | {"odeslaná pošta", "odeslané", "poslano", "poslana pošta", "poslané", "odoslané", "messages envoyés", "envoyés"}
    | {"éléments envoyés", "enviados", "elementos enviados", "posta inviata", "inviati", "verzonden", "wysłane"}
    | {
        "verzonden items",
        "elementy wysłane",
        "itens enviados",
        "skickat",
        "sendt",
        "lähetetyt",
        "gesendete nachrichten",
    }
)


def describe_mail(item: Fetched) -> Description:
    found = summarize_mail(item.content)
    return Description(
        urn=f"email::{found.message_id}",
        type="email",
        name=f"{found.subject or 'mail'}.eml".replace("/", "-")[:200],
        text=found.text,
        reading="mail",
        written_at=found.written_at,
        metadata={key: item.note[key] for key in ("folder",) if item.note.get(key)},
        digest=found.digest,
        messages=(found.message_id, *found.answers),
        sent=bool(item.note.get("sent")),
    )


def rename_mail(found: Description, urn: str) -> Description:
    """Another mail under the Message-ID of a mail that is here: it has an id of its own, and belongs to no thread.

    Whoever knows the id of a mail could else put words into its place, or into its thread.
    """
    id_ = urn.removeprefix("email::")
    said: dict[str, Any] = {"message_id": f"<{id_}>", "same_id_as": found.messages[0]}
    alone: dict[str, Any] = {"in_reply_to": "", "references": []}
    return replace(found, urn=urn, metadata={**found.metadata, **said, **alone}, messages=(id_,))


def is_sent_folder(name: str) -> bool:
    """Whether a folder is one of sent mails, by the last part of its name: INBOX.Sent, [Gmail]/Sent Mail, .Gesendet."""
    last = name.replace("/", ".").rstrip(".").rpartition(".")[2]
    return last.strip().casefold() in SENT_FOLDERS
