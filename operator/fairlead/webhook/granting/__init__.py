"""Binds that grant devices: the calls to the API server, and the policies' answers to what the ledger asks."""
