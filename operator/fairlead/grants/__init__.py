"""Grants of devices: entries of a ledger, what they use, when they are over, and what may be written."""
