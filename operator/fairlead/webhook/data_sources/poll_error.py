"""Error of a poll."""


class PollError(Exception):
    """Failed poll, with a message for users."""
