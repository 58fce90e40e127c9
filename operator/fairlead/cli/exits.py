"""What exit codes mean, the same for every command. docs/reference/commands.md has them from here."""

from typing import Final

DONE: Final = 0
NOT_WELL: Final = 1
NOT_ASKED: Final = 2
FAULT: Final = 70
INTERRUPTED: Final = 130
NOT_READ: Final = 141

MEANINGS: Final = {
    DONE: "done, and all is well",
    NOT_WELL: "it was looked at and is not well, or what was to be done failed; what was printed says what",
    NOT_ASKED: "it was not asked for rightly, or a file cannot be read, output not written, the cluster not asked",
    FAULT: "a fault of Fairlead's own; please report the line that it has printed",
    INTERRUPTED: "Ctrl-C, as a shell tells it",
    NOT_READ: "whoever read the output did not read to its end: the result is not known",
}
