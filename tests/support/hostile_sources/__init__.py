"""Sources of values that attack, and what their attacks do to the calls of others."""
