"""Texts of Jira Cloud, which are trees, become Markdown."""

from typing import Any

import pytest

from gristmill.sources.tracker.adf import convert_adf


def text(words: str, **mark: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"marks": [mark]} if mark else {})


def node(name: str, *content: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"type": name, "content": list(content)} | ({"attrs": attributes} if attributes else {})


def line(words: str) -> dict[str, Any]:
    return node("paragraph", text(words))


CELLS = [[node("tableHeader", line("a")), node("tableHeader", line("b|c"))], [node("tableCell", line("1"))]]


@pytest.mark.parametrize(
    ("tree", "markdown"),
    [
        (node("doc", line("One."), line("Two.")), "One.\n\nTwo."),
        (node("heading", text("Bearing"), level=2), "## Bearing"),
        (node("paragraph", text("so "), text("loud", type="strong")), "so **loud**"),
        (
            node("paragraph", text("here", type="link", attrs={"href": "https://a.example"})),
            "[here](https://a.example)",
        ),
        (node("bulletList", node("listItem", line("a")), node("listItem", line("b"))), "- a\n- b"),
        (
            node("orderedList", node("listItem", line("a"), node("bulletList", node("listItem", line("b"))))),
            "1. a\n   - b",
        ),
        (node("taskList", node("taskItem", text("Grease"), state="DONE")), "- [x] Grease"),
        (node("codeBlock", text("a < b"), language="py"), "```py\na < b\n```"),
        (node("panel", line("Careful."), panelType="info"), "> Careful."),
        (node("expand", line("Inside."), title="More"), "**More**\n\nInside."),
        (node("table", *(node("tableRow", *row) for row in CELLS)), "| a | b\\|c |\n| --- | --- |\n| 1 |  |"),
        (node("paragraph", node("mention", id="1", text="@Anna"), text(" sings")), "@Anna sings"),
        (node("paragraph", node("inlineCard", url="https://a.example/x")), "https://a.example/x"),
        (node("paragraph", node("date", timestamp="1709251200000")), "2024-03-01"),
        (node("paragraph", node("status", text="DONE"), node("emoji", shortName=":wave:")), "DONE:wave:"),
        (node("mediaSingle", node("media", type="file", alt="wheel.png")), "wheel.png"),
        (node("somethingNew", line("Its words stay.")), "Its words stay."),
        ("plain text", "plain text"),
        (None, ""),
        ({"type": "doc", "content": "odd"}, ""),
    ],
)
def test_a_tree_becomes_markdown(tree: Any, markdown: str) -> None:
    assert convert_adf(tree) == markdown


def test_a_tree_that_is_nested_without_end_is_refused() -> None:
    tree = line("deep")
    for _ in range(500):
        tree = node("blockquote", tree)
    with pytest.raises(ValueError, match="nested too deep"):
        convert_adf(tree)
