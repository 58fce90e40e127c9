"""Symbolic evaluation of expressions, and sets of nodes and pods."""
