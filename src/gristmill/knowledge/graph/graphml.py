"""The graph as GraphML, for Gephi, networkx and yEd: streamed, so that it may be larger than memory."""

import re
from collections.abc import AsyncGenerator
from xml.sax.saxutils import escape, quoteattr

from gristmill.db import Row, Tx, queries
from gristmill.knowledge.scopes import Scope, visible

SQL = queries("gristmill.knowledge.graph", "graphml.sql")
PORTION = 2_000
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # not even as &#0; may XML have them

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="label" for="node" attr.name="label" attr.type="string"/>
  <key id="type" for="node" attr.name="type" attr.type="string"/>
  <key id="mentions" for="node" attr.name="mentions" attr.type="long"/>
  <key id="chunks" for="node" attr.name="chunks" attr.type="long"/>
  <key id="relation" for="edge" attr.name="label" attr.type="string"/>
  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>
  <graph id="gristmill" edgedefault="directed">
"""
FOOT = "  </graph>\n</graphml>\n"


async def export(tx: Tx, scope: Scope) -> AsyncGenerator[str]:
    """Pieces of one document; `tx` should see one moment, or an edge may lack its node."""
    scopes = await visible(tx, scope)
    yield HEAD
    async for rows in tx.portions(SQL["nodes"], PORTION, scopes=scopes):
        yield "".join(map(_node, rows))
    async for rows in tx.portions(SQL["edges"], PORTION, scopes=scopes):
        yield "".join(map(_edge, rows))
    yield FOOT


def _node(row: Row) -> str:
    return (
        f'    <node id={_attribute(row.key)}><data key="label">{_text(row.name or row.key.partition("::")[2])}</data>'
        f'<data key="type">{_text(row.type)}</data><data key="mentions">{row.mentions}</data>'
        f'<data key="chunks">{row.chunks}</data></node>\n'
    )


def _edge(row: Row) -> str:
    return (
        f"    <edge source={_attribute(row.source)} target={_attribute(row.target)}>"
        f'<data key="relation">{_text(row.type)}</data><data key="weight">{row.evidence}</data></edge>\n'
    )


def _attribute(text: str) -> str:
    return quoteattr(ILLEGAL.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(ILLEGAL.sub("\ufffd", text))
