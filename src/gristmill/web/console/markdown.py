"""Draws Markdown that an agent wrote: its words and its structure, and nothing that acts or leads elsewhere."""

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from gristmill.wording import show_unseen

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# An agent repeats what documents and pages say. A link or a picture of theirs would be followed under our name, so both
# stay as they are written: the reader sees the address before anything is opened. An entity could stand for a character
# that is not seen.
LEFT_AS_WRITTEN = ["link", "image", "autolink", "reference", "html_block", "html_inline", "entity"]
DEEPER = 2  # a page has headings of the first and second level itself
DEEPEST = 6


@cache
def _build_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 it takes 20 ms, and few servers show reports

    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(LEFT_AS_WRITTEN)


def draw_markdown(text: str) -> Markup:
    """HTML for a text in Markdown; characters that are not seen are shown by their numbers."""
    parser = _build_parser()
    tokens = parser.parse(show_unseen(text))
    for token in tokens:
        token.attrs.pop("style", None)  # of cells: the content policy allows no styles within a page
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + DEEPER, DEEPEST)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # the renderer escapes every text
