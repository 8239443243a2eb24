"""The kinds of sources that there are."""

from collections.abc import Mapping

from gristmill.sources.calendar.caldav import CALDAV
from gristmill.sources.calendar.files import ICS
from gristmill.sources.git.connector import GIT
from gristmill.sources.mail.folders import EML, MAILDIR
from gristmill.sources.mail.imap import IMAP
from gristmill.sources.mail.pop3 import POP3
from gristmill.sources.meeting.folder import TRANSCRIPTS
from gristmill.sources.model import Kind
from gristmill.sources.wiki.folder import MARKDOWN

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (IMAP, POP3, EML, MAILDIR, GIT, TRANSCRIPTS, ICS, CALDAV, MARKDOWN)
}
