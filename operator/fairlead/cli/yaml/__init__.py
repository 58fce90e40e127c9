"""YAML with the position of each node. Pure."""
