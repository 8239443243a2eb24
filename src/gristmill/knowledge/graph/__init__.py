"""The graph of people and things that chunks name: written chunk by chunk, read as nodes and edges."""

from gristmill.knowledge.graph.contributions import (
    EdgeRef,
    Losses,
    NodeRef,
    extraction_key,
    find_losses,
    known_extractions,
    save,
)
from gristmill.knowledge.graph.graphml import export
from gristmill.knowledge.graph.reading import (
    Counts,
    Evidence,
    FoundNode,
    Neighbour,
    Node,
    Step,
    counts,
    edge_evidence,
    find,
    node,
    path,
    resolve,
    similar_names,
)
from gristmill.knowledge.graph.statements import (
    create_node_with_rag_links,
    create_relationship,
    hand_down_statements,
    retract_statements,
    statements_at_stake,
)

__all__ = [
    "Counts",
    "EdgeRef",
    "Evidence",
    "FoundNode",
    "Losses",
    "Neighbour",
    "Node",
    "NodeRef",
    "Step",
    "counts",
    "create_node_with_rag_links",
    "create_relationship",
    "edge_evidence",
    "export",
    "extraction_key",
    "find",
    "find_losses",
    "hand_down_statements",
    "known_extractions",
    "node",
    "path",
    "resolve",
    "retract_statements",
    "save",
    "similar_names",
    "statements_at_stake",
]
