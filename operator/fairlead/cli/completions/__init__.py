"""Completion of command lines: the scripts of the shells, and names from the cluster."""
