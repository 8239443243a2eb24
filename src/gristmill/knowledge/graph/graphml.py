"""The graph as GraphML, for Gephi, networkx and yEd: streamed, so that it may be larger than memory."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import orjson

from gristmill.db import Tx, queries
from gristmill.knowledge.graph.reading import merge_properties
from gristmill.scopes import Scope, visible

SQL = queries("gristmill.knowledge.graph", "graphml.sql")
PORTION = 2_000
# XML may not have these characters, not even as &#0;
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="label" for="node" attr.name="label" attr.type="string"/>
  <key id="type" for="node" attr.name="type" attr.type="string"/>
  <key id="mentions" for="node" attr.name="mentions" attr.type="long"/>
  <key id="chunks" for="node" attr.name="chunks" attr.type="long"/>
  <key id="stated" for="node" attr.name="properties" attr.type="string"/>
  <key id="relation" for="edge" attr.name="label" attr.type="string"/>
  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>
  <key id="known" for="edge" attr.name="properties" attr.type="string"/>
  <graph id="gristmill" edgedefault="directed">
"""
FOOT = "  </graph>\n</graphml>\n"


async def export(tx: Tx, scope: Scope) -> AsyncGenerator[str]:
    """The pieces of one XML document. `tx` should see a single moment, or an edge may lack its node."""
    visible_to = {"client": scope.client, "scopes": await visible(tx, scope)}
    yield HEAD
    async for rows in tx.portions(SQL["nodes"], _NodeRow, PORTION, **visible_to):
        yield "".join(map(_node_xml, rows))
    async for rows in tx.portions(SQL["edges"], _EdgeRow, PORTION, **visible_to):
        yield "".join(map(_edge_xml, rows))
    yield FOOT


class _NodeRow(NamedTuple):
    key: str
    name: str
    type: str
    mentions: int
    chunks: int
    stated: Sequence[Mapping[str, Any]] | None


class _EdgeRow(NamedTuple):
    source: str
    type: str
    target: str
    evidence: int
    properties: Sequence[Any] | None


def _node_xml(row: _NodeRow) -> str:
    return (
        f'    <node id={_attribute(row.key)}><data key="label">{_text(row.name)}</data>'
        f'<data key="type">{_text(row.type)}</data><data key="mentions">{row.mentions}</data>'
        f'<data key="chunks">{row.chunks}</data>{_json_xml("stated", merge_properties(row.stated))}</node>\n'
    )


def _edge_xml(row: _EdgeRow) -> str:
    return (
        f"    <edge source={_attribute(row.source)} target={_attribute(row.target)}>"
        f'<data key="relation">{_text(row.type)}</data><data key="weight">{row.evidence}</data>'
        f"{_json_xml('known', row.properties)}</edge>\n"
    )


def _json_xml(key: str, value: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """Properties as JSON: an object for a node; for an edge the list of its evidence's properties, each once."""
    return f'<data key="{key}">{_text(orjson.dumps(value).decode())}</data>' if value else ""


def _attribute(text: str) -> str:
    return quoteattr(ILLEGAL.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(ILLEGAL.sub("\ufffd", text))
