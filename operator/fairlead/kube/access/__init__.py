"""Where the API server is, and who asks."""
