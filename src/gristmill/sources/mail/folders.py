"""Mails in folders of this machine: `.eml` files, and Maildir as mail servers keep it."""

import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import Field

from gristmill.errors import Permanent
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
    """The mails of a Maildir and of the folders in it; a mail keeps its id when it is read, flagged or moved to cur.

    A folder with files and no Maildir is another kind of folder. One without files stays possible: a mail program makes
    its Maildir when the first mail comes.
    """
    is_maildir = has_files = False
    for folder, inner, names in os.walk(root, onerror=complain):
        place = Path(folder)
        if not {"cur", "new"} <= set(inner):
            inner.sort()
            has_files = has_files or any(not name.startswith(".") for name in names)
            continue
        is_maildir = True
        inner[:] = sorted(name for name in inner if name not in ("cur", "new", "tmp"))
        name = name_within(place, root).lstrip(".") or "INBOX"
        note = {"folder": name, **({"sent": True} if is_sent_folder(name) else {})}
        for part in ("cur", "new"):
            for file in _scan(place / part, complain):
                if not file.name.startswith("."):
                    path = Path(file.path)
                    external = name_within(place / file.name.partition(":")[0], root)
                    yield FoundFile(path, external, None, note)
    if has_files and not is_maildir:
        raise Permanent(f"{root} is no Maildir: there is no folder with cur and new. The kind eml reads .eml files.")


def check_maildir(root: Path) -> None:
    """Permanent if this folder is no Maildir, and is not to become one."""
    for _ in find_maildir(root, lambda error: None):
        return


def _scan(folder: Path, complain: Complain) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError as error:
        complain(error)
        return []


EML = Kind("eml", "A folder of .eml files.", MailFolderOptions, open_eml, describe_mail)
MAILDIR = Kind(
    "maildir",
    "A Maildir, with the folders in it.",
    MailFolderOptions,
    open_maildir,
    describe_mail,
    check_folder=check_maildir,
)
