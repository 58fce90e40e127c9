"""Health of a reflector, for probes and metrics."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final


class Relist(StrEnum):
    """Why everything is listed."""

    START = "start"
    EXPIRED = "expired"  # the version that was watched from is no longer known
    ASKED = "asked"  # the sink wants to see everything again
    DIFFERS = "differs"  # the consistency pass found that what is held is not what there is
    REFUSED = "refused"  # the watch was, for what another one would not mend
    SILENT = "silent"  # watches begin well and then say nothing, not even bookmarks
    FAILING = "failing"  # the watch failed again and again


SILENT_S: Final = 75.0
"""A watch is silent then: the API server sends a bookmark about once a minute."""


@dataclass(slots=True)
class ReflectorStatus:
    """Health of one reflector."""

    synced: bool = False
    """Whether everything was listed once."""
    last_contact: float | None = None
    """When something was last heard of what is held, by the monotonic clock: a page, an event, a bookmark."""
    last_error: str = ""
    """What went wrong last; empty while all is well."""
    missing_permission: str = ""
    """The right without which nothing can be heard; empty where it is not that."""
    events: Counter[str] = field(default_factory=Counter)
    """By type, with BOOKMARK and ERROR."""
    relists: Counter[Relist] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """By reason: `unreachable`, `silent`, `access` (nobody knows who asks), or the status of the answer."""
    unreadable: int = 0
    """Objects that could not be decoded, and were passed over."""
    differences: int = 0
    """What consistency passes have found."""

    def staleness(self, now: float) -> float:
        """Return for how long what is held may be behind what there is; infinite before the first list.

        A watch of what does not change says nothing but a bookmark a minute: it is behind once that is overdue.
        """
        if not self.synced or self.last_contact is None:
            return inf
        silent = now - self.last_contact
        return 0.0 if silent <= SILENT_S and not self.last_error else silent
