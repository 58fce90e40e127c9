"""Policies from the configuration of other load-aware schedulers. All but the command is pure."""
