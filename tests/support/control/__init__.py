"""The leader, beside an API server."""
