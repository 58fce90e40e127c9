"""From a written policy to one that can be evaluated."""
