"""Interleavings of writers of groups' ledgers: members of one group, nodes in domains, and what goes wrong."""
