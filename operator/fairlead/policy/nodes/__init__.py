"""Nodes by slot, the journal of their changes, and what is measured of them."""
