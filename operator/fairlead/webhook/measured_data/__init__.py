"""Measured data as a capability of a replica: what policies read is polled, published to nodes and reported."""
