"""What the API server says, and what is made of it."""
