"""How a command ends that cannot do its work: one line that says what to do, and an exit code."""

from typing import Final

ERRORS: Final = 1
"""What was read is wrong."""
USAGE: Final = 2
"""Something could not be read, or was not asked for rightly."""


class CommandError(Exception):
    """Says in one line what is wrong and what to do."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
