"""An extender beside the one that is tested, by which a group is held by half: other members come no further."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from extender.recorder import Recorder
from extender.replies import Answer, passing
from testbed.api import Object

_LONGEST_S = 60.0


@dataclass(slots=True, eq=False)
class HalfHeld:
    """So many members of a group pass. Others are answered with an error, or wait in the scheduler's cycle."""

    prefix: str
    """Names of the members begin with it."""
    count: int
    waits: bool = False
    passed: set[str] = field(default_factory=set)
    reached: threading.Event = field(default_factory=threading.Event)
    """Another member has come."""
    _let_go: threading.Event = field(default_factory=threading.Event)

    def reply(self, request: Object) -> Object | Answer:
        """Let a pod pass, or not yet."""
        name = str(request["Pod"]["metadata"]["name"])
        if name.startswith(self.prefix) and name not in self.passed and not self._let_go.is_set():
            if len(self.passed) >= self.count:
                self.reached.set()
                if not self.waits:
                    return Answer(b"", status=500)
                self._let_go.wait(_LONGEST_S)
            else:
                self.passed.add(name)
        return passing(request)

    def let_go(self) -> None:
        """Let all pass from now on."""
        self._let_go.set()


@contextmanager
def half_held(keys: Path, prefix: str, count: int, *, waits: bool = False) -> Iterator[tuple[HalfHeld, Object]]:
    """Yield it, and its entry of a scheduler's `extenders`, which must be the last one that filters."""
    made = HalfHeld(prefix, count, waits)
    with Recorder(keys) as recorder:
        recorder.replies["half/filter"] = made.reply
        try:
            yield made, recorder.entry("half", "filter", httpTimeout="60s")
        finally:
            made.let_go()
