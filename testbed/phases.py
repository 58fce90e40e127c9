"""Says what is going on and how long each part of it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from testbed.errors import ClusterError


@dataclass(slots=True)
class Phases:
    """The phases of one command, in their order."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the work, and name it when it fails."""
        began = time.monotonic()
        try:
            yield
        except ClusterError as error:
            error.add_note(f"  while: {name}, after {time.monotonic() - began:.1f} s")
            raise
        self.seconds[name] = time.monotonic() - began
        say(f"{name}: {self.seconds[name]:.1f} s")

    def __str__(self) -> str:
        return f"in all: {sum(self.seconds.values()):.1f} s"


def say(line: str) -> None:
    """Tell the person who waits. What a program would read goes to standard output instead."""
    print(line, file=sys.stderr, flush=True)
