"""Observe, apply and verify: everything that calls the API server and the replicas."""
