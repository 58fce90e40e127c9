"""An expression as a tree and as text."""
