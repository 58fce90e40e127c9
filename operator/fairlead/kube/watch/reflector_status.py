"""Health of a reflector, for probes and metrics."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

from fairlead.kube.watch.store import Key


class Relist(StrEnum):
    """Reason for listing everything."""

    START = "start"
    EXPIRED = "expired"  # the resource version of the watch has expired
    ASKED = "asked"  # the sink needs every object again
    DIFFERS = "differs"  # the consistency check found differences
    REFUSED = "refused"  # the API server refused the watch, and would refuse another one
    SILENT = "silent"  # watches start and then receive nothing, not even bookmarks
    FAILING = "failing"  # the watch failed repeatedly


SILENT_S: Final = 75.0
"""Silence after which a watch has failed: the API server sends a bookmark about once a minute."""


@dataclass(slots=True)
class ReflectorStatus:
    """Health of one reflector."""

    synced: bool = False
    """Whether everything has been listed once."""
    last_contact: float | None = None
    """Monotonic time of the last page, event or bookmark."""
    last_error: str = ""
    """The last error; "" while the watch is healthy."""
    missing_permission: str = ""
    """The missing permission that prevents the watch; "" if none is missing."""
    events: Counter[str] = field(default_factory=Counter)
    """Events by type, including BOOKMARK and ERROR."""
    relists: Counter[Relist] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by reason: `unreachable`, `silent`, `access` (no credentials), `fault`, or the status of the reply."""
    faults: dict[Key, str] = field(default_factory=dict)
    """Objects with which the sink fails, and the type of the exception; the watch goes on with the others."""
    unreadable: int = 0
    """Objects that could not be read and were skipped."""
    differences: int = 0
    """Differences that consistency checks have found."""

    def staleness(self, now: float) -> float:
        """Return for how many seconds the store may be behind the API server; infinite before the first list.

        A watch of objects that do not change receives only a bookmark a minute: it is stale once that is overdue.
        """
        if not self.synced or self.last_contact is None:
            return inf
        silent = now - self.last_contact
        return 0.0 if silent <= SILENT_S and not self.last_error else silent
