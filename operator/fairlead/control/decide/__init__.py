"""From desired and observed state to a decision; pure."""
