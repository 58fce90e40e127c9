"""The cluster as rules see it, kept exact; pure."""
