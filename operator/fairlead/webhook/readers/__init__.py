"""Servers for those who read: metrics with a token, and decisions on the loopback address."""
