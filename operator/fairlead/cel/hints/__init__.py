"""From what the engine refuses to what its author meant."""
