"""Domains of groups whose members have to share one: their ledgers are watched, and written before a Binding."""
