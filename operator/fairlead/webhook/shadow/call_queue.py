"""Queue of what is left to compare in idle time."""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from fairlead.webhook.shadow.observed_calls import ObservedCall

CALLS: Final = 256
BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Work that was begun for a call, and goes on in stretches."""

    call: ObservedCall
    steps: Generator[int, None, None]
    """Yields how many results are out of date, before work that may take longer."""
    is_comparison: bool = False
    """Whether it compares the call, which is counted whatever comes of it."""


@dataclass(slots=True, eq=False)
class CallQueue:
    """Queue of tasks, limited in number and bytes."""

    size: int = 0
    """Bytes of all."""
    _tasks: deque[tuple[Task, int]] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._tasks)

    def put(self, task: Task) -> bool:
        """Add a task at the end; return False if there is no room for it."""
        if len(self._tasks) >= CALLS:
            return False
        size = task.call.size
        if self.size + size > BYTES:
            return False
        self._tasks.append((task, size))
        self.size += size
        return True

    @property
    def first(self) -> Task:
        """Return the first task."""
        return self._tasks[0][0]

    def drop_first(self) -> None:
        """Remove the first task."""
        _, size = self._tasks.popleft()
        self.size -= size
