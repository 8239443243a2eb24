"""The document format of Jira Cloud (ADF: a tree of nodes) to Markdown."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

DEEPEST = 100  # levels: more of them is no text that a person wrote
MARKS = {"strong": "**", "em": "*", "code": "`", "strike": "~~"}
Node = Mapping[str, Any]


def convert_adf(node: Any) -> str:
    """The Markdown of a document; plain text stays as it is, and nothing becomes nothing."""
    if not isinstance(node, Mapping):
        return node if isinstance(node, str) else ""
    return _write_block(cast(Node, node), 0).strip()


def _children(node: Node) -> list[Node]:
    content = node.get("content")
    return [one for one in cast(list[Any], content) if isinstance(one, Mapping)] if isinstance(content, list) else []


def _attribute(node: Node, name: str) -> str:
    attributes = node.get("attrs")
    value = cast(Node, attributes).get(name) if isinstance(attributes, Mapping) else None
    return str(value) if value is not None else ""


def _write_block(node: Node, depth: int) -> str:
    if depth > DEEPEST:
        raise ValueError("it is nested too deep")
    name = str(node.get("type", ""))
    if name in INLINE:
        return _write_inline(node)
    return BLOCKS.get(name, _write_blocks)(node, depth + 1)


def _write_blocks(node: Node, depth: int) -> str:
    """The blocks within a node, one after the other. Nodes of an unknown kind are read in the same way."""
    return "\n\n".join(filter(None, (_write_block(one, depth) for one in _children(node))))


def _write_line(node: Node, depth: int) -> str:
    return "".join(_write_block(one, depth) for one in _children(node)).strip()


def _write_heading(node: Node, depth: int) -> str:
    level = _attribute(node, "level")
    return f"{'#' * (int(level) if level in tuple('123456') else 3)} {_write_line(node, depth)}"


def _write_list(node: Node, depth: int) -> str:
    ordered = node.get("type") == "orderedList"
    lines = list[str]()
    for number, item in enumerate(_children(node), 1):
        sign = f"{number}. " if ordered else "- "
        body = _write_block(item, depth)
        lines.append(sign + body.replace("\n\n", "\n").replace("\n", "\n" + " " * len(sign)))
    return "\n".join(lines)


def _write_task(node: Node, depth: int) -> str:
    return f"[{'x' if _attribute(node, 'state') == 'DONE' else ' '}] {_write_line(node, depth)}"


def _write_code(node: Node, depth: int) -> str:
    text = "".join(str(one.get("text", "")) for one in _children(node))
    fence = "````" if "```" in text else "```"
    return f"{fence}{_attribute(node, 'language')}\n{text}\n{fence}"


def _write_quote(node: Node, depth: int) -> str:
    return "\n".join(f"> {line}".rstrip() for line in _write_blocks(node, depth).splitlines())


def _write_expand(node: Node, depth: int) -> str:
    title = _attribute(node, "title")
    return "\n\n".join(filter(None, (f"**{title}**" if title else "", _write_blocks(node, depth))))


def _write_table(node: Node, depth: int) -> str:
    rows = [[_write_cell(cell, depth) for cell in _children(row)] for row in _children(node)]
    width = max(map(len, rows), default=0)
    lines = ["| " + " | ".join([*row, *[""] * (width - len(row))]) + " |" for row in rows]
    return "\n".join([*lines[:1], "|" + " --- |" * width, *lines[1:]]) if lines and width else ""


def _write_cell(node: Node, depth: int) -> str:
    return " ".join(_write_blocks(node, depth).split()).replace("|", "\\|")


BLOCKS: Mapping[str, Callable[[Node, int], str]] = {
    "paragraph": _write_line,
    "heading": _write_heading,
    "bulletList": _write_list,
    "orderedList": _write_list,
    "taskList": _write_list,
    "decisionList": _write_list,
    "taskItem": _write_task,
    "decisionItem": _write_line,
    "codeBlock": _write_code,
    "blockquote": _write_quote,
    "panel": _write_quote,
    "expand": _write_expand,
    "nestedExpand": _write_expand,
    "table": _write_table,
    "rule": lambda node, depth: "---",
}


# --- within a line


def _write_inline(node: Node) -> str:
    return INLINE[str(node["type"])](node)


def _write_text(node: Node) -> str:
    text = str(node.get("text", ""))
    marks = node.get("marks")
    for mark in cast(list[Any], marks) if isinstance(marks, list) else []:
        name = str(cast(Node, mark).get("type")) if isinstance(mark, Mapping) else ""
        if name == "link":
            text = f"[{text}]({_attribute(cast(Node, mark), 'href')})"
        elif text.strip() and name in MARKS:
            text = f"{MARKS[name]}{text}{MARKS[name]}"
    return text


def _write_mention(node: Node) -> str:
    name = _attribute(node, "text") or _attribute(node, "id")
    return f"@{name.removeprefix('@')}"


def _write_card(node: Node) -> str:
    return _attribute(node, "url")


def _write_date(node: Node) -> str:
    said = _attribute(node, "timestamp")  # milliseconds
    return f"{datetime.fromtimestamp(int(said) / 1000, UTC):%Y-%m-%d}" if said.isdigit() and len(said) < 15 else said


INLINE: Mapping[str, Callable[[Node], str]] = {
    "text": _write_text,
    "hardBreak": lambda node: "  \n",
    "mention": _write_mention,
    "emoji": lambda node: _attribute(node, "text") or _attribute(node, "shortName"),
    "date": _write_date,
    "status": lambda node: _attribute(node, "text"),
    "inlineCard": _write_card,
    "blockCard": _write_card,
    "embedCard": _write_card,
    "media": lambda node: _attribute(node, "alt"),
    "mediaInline": lambda node: _attribute(node, "alt"),
}
