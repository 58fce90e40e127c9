"""Interleavings of writers of ledgers: an API server in memory, replicas with the real core, and what goes wrong."""
