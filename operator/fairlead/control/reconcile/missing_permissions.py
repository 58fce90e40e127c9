"""Missing permissions of the leader's tasks other than reconciles: each is reported until the task succeeds."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.kube.errors import ClusterError, ForbiddenError

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class MissingPermissions:
    """Missing permissions, by the consequence for users."""

    changes: int = 0
    """Number of changes, so that a permission that came and went between two looks is noticed."""
    _messages: dict[str, str] = field(default_factory=dict)

    def record(self, what: str, error: ClusterError) -> None:
        """Log a failure, and record it if the reason is a missing permission."""
        is_missing = isinstance(error, ForbiddenError) and error.is_of_rbac
        event = "permission.missing" if is_missing else "leader.task_failed"
        LOG.warning(event, extra={"consequence": what, "error": str(error)})
        if is_missing:
            self.changes += what not in self._messages
            self._messages[what] = f"{what}: {error}"

    def clear(self, what: str) -> None:
        """Remove a failure: the task succeeded, or is not needed any more."""
        self.changes += self._messages.pop(what, None) is not None

    async def attempt(self, what: str, work: Callable[[], Awaitable[object]]) -> bool:
        """Do some work, and record its failure or that it succeeded; return whether it did."""
        try:
            await work()
        except ClusterError as error:
            self.record(what, error)
            return False
        self.clear(what)
        return True

    def __contains__(self, what: str) -> bool:
        """Return whether a permission is missing for that."""
        return what in self._messages

    @property
    def messages(self) -> Sequence[str]:
        """Messages, each with the RBAC rule to add."""
        return tuple(text for _, text in sorted(self._messages.items()))


class UnloggedPermissions(MissingPermissions):
    """Missing permissions of a command, which are printed, not logged."""

    def record(self, what: str, error: ClusterError) -> None:
        """Record a failure."""
        self._messages[what] = f"{what}: {error}"
