"""The storage format of Confluence (XHTML with elements of its own) to Markdown."""

from html import escape
from html.parser import HTMLParser

from gristmill.sources.html import convert_html

CDATA, CDATA_END = "<![CDATA[", "]]>"
VOID = frozenset({"br", "hr", "img", "col", "wbr", "input"})
SHOWN_PARAMETERS = frozenset({"title", "key"})  # of a panel, of an issue
CAPTURED = frozenset({"ac:parameter", "ac:task-id", "ac:task-status", "ac:placeholder", "ac:task-uuid"})
BLOCKS = {"ac:rich-text-body": "div", "ac:layout-cell": "div", "ac:task-list": "ul", "ac:task": "li"}
BODIES = ("ac:link-body", "ac:plain-text-link-body")


def convert_storage(storage: str) -> str:
    """Markdown of a page."""
    reader = _StorageReader()
    reader.feed(_escape_sections(storage))
    reader.close()
    return convert_html("".join(reader.html)).strip()


def _escape_sections(storage: str) -> str:
    """Sections of plain text, code above all, as HTML writes them: an HTML parser knows no sections."""
    kept, at = list[str](), 0
    while (start := storage.find(CDATA, at)) >= 0:
        end = storage.find(CDATA_END, start)
        end = len(storage) if end < 0 else end
        kept += storage[at:start], escape(storage[start + len(CDATA) : end])
        at = end + len(CDATA_END)
    return "".join(kept) + storage[at:]


class _StorageReader(HTMLParser):
    """Writes plain HTML of what it reads: macros become their texts, links their titles, tasks boxes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.html: list[str] = []
        self._captured: list[str] | None = None  # text that is looked at before it is shown
        self._parameter = ""
        self._language = ""
        self._link: str | None = None  # the title of a link's page, until the link ends or its own words are read
        self._in_image = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in CAPTURED:
            self._captured, self._parameter = [], given.get("ac:name", "")
        elif tag in BLOCKS:
            self.html.append(f"<{BLOCKS[tag]}>")
        elif tag.startswith(("ac:", "ri:")):
            self._begin_own(tag, given)
        elif tag == "time":
            self.html.append(escape(given.get("datetime", "")))
        elif tag == "img":
            self.html.append(escape(given.get("alt", "")))
        else:
            address = f' href="{escape(given["href"])}"' if tag == "a" and "href" in given else ""
            self.html.append(f"<{tag}{address}>")

    def _begin_own(self, tag: str, given: dict[str, str]) -> None:
        if tag == "ac:structured-macro":
            self._language = ""
        elif tag == "ac:plain-text-body":
            self.html.append(
                f'<pre><code class="language-{escape(self._language)}">' if self._language else "<pre><code>"
            )
        elif tag == "ac:link":
            self._link = ""
        elif tag == "ac:image":
            self._in_image = True
        elif tag in BODIES:
            self._link = None
        elif tag == "ac:emoticon":
            self.html.append(escape(given.get("ac:emoji-fallback", "")))
        elif tag in ("ri:page", "ri:blog-post", "ri:attachment"):
            self._name_target(given.get("ri:content-title") or given.get("ri:filename", ""))

    def _name_target(self, title: str) -> None:
        if self._in_image:
            self.html.append(f"<em>{escape(title)}</em>")
        elif self._link is not None:
            self._link = title

    def handle_endtag(self, tag: str) -> None:
        if tag in CAPTURED:
            self._end_captured(tag)
        elif tag in BLOCKS:
            self.html.append(f"</{BLOCKS[tag]}>")
        elif tag == "ac:plain-text-body":
            self.html.append("</code></pre>")
        elif tag == "ac:link":
            self.html.append(escape(self._link or ""))
            self._link = None
        elif tag == "ac:image":
            self._in_image = False
        elif not tag.startswith(("ac:", "ri:")) and tag not in VOID and tag not in ("time", "img"):
            self.html.append(f"</{tag}>")

    def _end_captured(self, tag: str) -> None:
        text, self._captured = "".join(self._captured or []).strip(), None
        if tag == "ac:task-status":
            self.html.append("[x] " if text == "complete" else "[ ] ")
        elif tag == "ac:parameter" and self._parameter == "language":
            self._language = text
        elif tag == "ac:parameter" and self._parameter in SHOWN_PARAMETERS and text:
            words = escape(text)
            self.html.append(f"<p><strong>{words}</strong></p>" if self._parameter == "title" else words)

    def handle_data(self, data: str) -> None:
        if self._captured is not None:
            self._captured.append(data)
        else:
            self.html.append(escape(data, quote=False))
