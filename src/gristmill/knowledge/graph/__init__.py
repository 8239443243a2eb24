"""The graph of who and what chunks name: written chunk by chunk, read as nodes and edges."""

from gristmill.knowledge.graph.contributions import Edge, Losses, Named, key_of, known, losses, save
from gristmill.knowledge.graph.graphml import export
from gristmill.knowledge.graph.reading import (
    Counts,
    Evidence,
    Found,
    Neighbour,
    Node,
    Step,
    counts,
    find,
    near_names,
    node,
    path,
    proof,
    resolve,
)
from gristmill.knowledge.graph.statements import (
    at_stake,
    create_node_with_rag_links,
    create_relationship,
    hand_down,
    unstate,
)

__all__ = [
    "Counts",
    "Edge",
    "Evidence",
    "Found",
    "Losses",
    "Named",
    "Neighbour",
    "Node",
    "Step",
    "at_stake",
    "counts",
    "create_node_with_rag_links",
    "create_relationship",
    "export",
    "find",
    "hand_down",
    "key_of",
    "known",
    "losses",
    "near_names",
    "node",
    "path",
    "proof",
    "resolve",
    "save",
    "unstate",
]
