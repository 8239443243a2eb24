"""Git repositories as a source: cloned into a workspace, their commits become a graph and searchable diffs."""
