"""The Lease of the leader."""
