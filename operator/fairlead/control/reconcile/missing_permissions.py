"""Rights that were found missing for what is done beside the passes: each is told until it went well again."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.kube.errors import ClusterError, ForbiddenError

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class MissingPermissions:
    """What could not be done, by what it was."""

    changes: int = 0
    """How often something came or went: it may have come and gone again while nobody looked."""
    _messages: dict[str, str] = field(default_factory=dict)

    def record(self, what: str, error: ClusterError) -> None:
        """It could not be done; not all that fails does so for want of a right."""
        is_missing = isinstance(error, ForbiddenError) and error.is_of_rbac
        event = "permission.missing" if is_missing else "leader.task_failed"
        LOG.warning(event, extra={"consequence": what, "error": str(error)})
        if is_missing:
            self.changes += what not in self._messages
            self._messages[what] = f"{what}: {error}"

    def clear(self, what: str) -> None:
        """It was done, or is not to be done any more."""
        self.changes += self._messages.pop(what, None) is not None

    def __contains__(self, what: str) -> bool:
        """Whether that could not be done."""
        return what in self._messages

    @property
    def messages(self) -> Sequence[str]:
        """In words, each with the rule to add."""
        return tuple(text for _, text in sorted(self._messages.items()))
