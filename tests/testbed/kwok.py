"""Nodes that are only objects."""

LABEL = ("fairlead.dev/testbed", "kwok")
