"""Holding: bind calls of members wait until their whole group has found room; and what holding needs to know."""
