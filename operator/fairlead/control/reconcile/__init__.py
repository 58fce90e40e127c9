"""Observe, apply and verify: all that asks the API server and the replicas."""
