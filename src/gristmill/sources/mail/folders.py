"""Mails in folders of this machine: `.eml` files, and Maildir as mail servers keep it."""

import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import Field

from gristmill.settings import Slice
from gristmill.sources.folder.connector import Complain, FoundFile, find_by_suffix, name_within, open_folder
from gristmill.sources.mail.index import describe_mail, is_sent_folder
from gristmill.sources.model import Connector, ConnectorContext, Kind


class MailFolderOptions(Slice):
    """Where the mails are."""

    path: str = Field(min_length=1, description="The folder.")


def open_eml(options: MailFolderOptions, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    return open_folder(options.path, find_by_suffix(".eml"), context)


def open_maildir(options: MailFolderOptions, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    return open_folder(options.path, find_maildir, context)


def find_maildir(root: Path, complain: Complain) -> Iterator[FoundFile]:
    """The mails of a Maildir and of the folders in it; a mail keeps its id when it is read, flagged or moved to cur."""
    for folder, inner, _ in os.walk(root, onerror=complain):
        place = Path(folder)
        if not {"cur", "new"} <= set(inner):
            inner.sort()
            continue
        inner[:] = sorted(name for name in inner if name not in ("cur", "new", "tmp"))
        name = name_within(place, root).lstrip(".") or "INBOX"
        note = {"folder": name, **({"sent": True} if is_sent_folder(name) else {})}
        for part in ("cur", "new"):
            for file in _scan(place / part, complain):
                if not file.name.startswith("."):
                    path = Path(file.path)
                    external = name_within(place / file.name.partition(":")[0], root)
                    yield FoundFile(path, external, None, note)


def _scan(folder: Path, complain: Complain) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError as error:
        complain(error)
        return []


EML = Kind("eml", "A folder of .eml files.", MailFolderOptions, open_eml, describe_mail)
MAILDIR = Kind("maildir", "A Maildir, with the folders in it.", MailFolderOptions, open_maildir, describe_mail)
