"""The place of the API server, and the credentials for it."""
