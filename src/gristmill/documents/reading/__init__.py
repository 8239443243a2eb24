"""From bytes to pages of Markdown: what a file is, what lies in it, what its pages say."""

from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import spent_opening
from gristmill.documents.reading.opening import TYPES, VERSION, inspect, read
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Part, Shunned

__all__ = [
    "BEGINNING",
    "TYPES",
    "VERSION",
    "Bookmark",
    "Inspection",
    "Limits",
    "PageText",
    "Part",
    "Shunned",
    "inspect",
    "read",
    "spent_opening",
]
