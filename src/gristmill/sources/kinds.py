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
from gristmill.sources.tracker.github import GITHUB
from gristmill.sources.tracker.gitlab import GITLAB
from gristmill.sources.tracker.jira import JIRA
from gristmill.sources.wiki.confluence import CONFLUENCE
from gristmill.sources.wiki.folder import MARKDOWN

MAIL = (IMAP, POP3, EML, MAILDIR)
TRACKERS = (JIRA, GITHUB, GITLAB)
WIKIS = (CONFLUENCE, MARKDOWN)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*MAIL, *TRACKERS, *WIKIS, GIT, TRANSCRIPTS, ICS, CALDAV)}
