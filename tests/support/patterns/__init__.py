"""Patterns that see the text of others: all there are in the product, and how their work grows with the text."""
