"""Grants of devices: the ledger of each node, who may write what in it, and the bind that keeps its promise."""
