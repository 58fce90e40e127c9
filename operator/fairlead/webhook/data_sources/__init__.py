"""Values of nodes that are measured or written elsewhere, for the `data` of policies."""
