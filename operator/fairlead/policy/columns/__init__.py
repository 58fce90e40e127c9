"""Columns: results by node, of rules for a class of pods and of data."""
