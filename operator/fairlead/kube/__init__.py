"""What the API server says: asked, listed, watched, and kept."""
