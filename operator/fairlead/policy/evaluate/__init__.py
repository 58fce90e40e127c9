"""Verdicts and scores over all nodes, and their cache."""
