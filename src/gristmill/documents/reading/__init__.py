"""From bytes to pages of Markdown: what a file is, what lies in it, what its pages say."""

from gristmill.documents.reading.keys import VERSION, make_key, make_page_key
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.mail_summary import MailSummary, read_message_id, summarize_mail
from gristmill.documents.reading.open_files import measure_opening
from gristmill.documents.reading.opening import (
    PICTURES,
    TYPES,
    draw_page,
    find_places,
    has_picture,
    inspect,
    read,
    read_ahead,
    refuse_undrawn,
)
from gristmill.documents.reading.places import PlacedSpan, Span, find_in_words
from gristmill.documents.reading.quotes import MailText, find_new_spans, split_quoted
from gristmill.documents.reading.results import (
    BEGINNING,
    Bookmark,
    Inspection,
    Method,
    PageText,
    Part,
    ReadAhead,
    Shunned,
)
from gristmill.documents.reading.transcript import find_time_span, parse_transcript

__all__ = [
    "BEGINNING",
    "PICTURES",
    "TYPES",
    "VERSION",
    "Bookmark",
    "Inspection",
    "Limits",
    "MailSummary",
    "MailText",
    "Method",
    "PageText",
    "Part",
    "PlacedSpan",
    "ReadAhead",
    "Shunned",
    "Span",
    "draw_page",
    "find_in_words",
    "find_new_spans",
    "find_places",
    "find_time_span",
    "has_picture",
    "inspect",
    "make_key",
    "make_page_key",
    "measure_opening",
    "parse_transcript",
    "read",
    "read_ahead",
    "read_message_id",
    "refuse_undrawn",
    "split_quoted",
    "summarize_mail",
]
