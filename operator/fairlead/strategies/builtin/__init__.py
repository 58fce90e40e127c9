"""Built-in strategies, one module each, and what several of them share."""
