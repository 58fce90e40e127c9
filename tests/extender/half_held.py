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
    """Some members of a group pass. Others are answered with an error, or wait in the scheduler's cycle."""

    entry: Object
    """Entry of a scheduler's `extenders`, which must be the last one that filters."""
    prefix: str = "half-"
    """Names of the members begin with it."""
    count: int = 4
    waits: bool = False
    passed: set[str] = field(default_factory=set)
    reached: threading.Event = field(default_factory=threading.Event)
    """Another member has come."""
    _let_go: threading.Event = field(default_factory=threading.Event)

    def reply(self, request: Object) -> Object | Answer:
        """Let a pod pass, or not yet."""
        name = str(request["Pod"]["metadata"]["name"])
        if name.startswith(self.prefix) and name not in self.passed and not self._let_go.is_set():
            if len(self.passed) < self.count:
                self.passed.add(name)
            else:
                self.reached.set()
                if not self.waits:
                    return Answer(b"", status=500)
                self._let_go.wait(_LONGEST_S)
        return passing(request)

    def let_go(self) -> None:
        """Let all pass from now on."""
        self._let_go.set()


@contextmanager
def half_held(keys: Path) -> Iterator[HalfHeld]:
    """Yield it. Schedulers that call it must end before it does."""
    with Recorder(keys) as recorder:
        made = HalfHeld(recorder.entry("half", "filter", httpTimeout="60s"))
        recorder.replies["half/filter"] = made.reply
        try:
            yield made
        finally:
            made.let_go()
