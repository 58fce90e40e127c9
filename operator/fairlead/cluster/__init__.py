"""What is read from the API server, and what is kept of it."""
