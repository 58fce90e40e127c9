"""How a reflector fares, for probes, metrics and whoever has to decide whether to believe it."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf


class Relist(StrEnum):
    """Why everything is listed."""

    START = "start"
    EXPIRED = "expired"  # the version that was watched from is no longer known
    ASKED = "asked"  # the sink wants to see everything again
    DIFFERS = "differs"  # the consistency pass found that what is held is not what there is
    REFUSED = "refused"  # the watch was, for what another one would not mend
    SILENT = "silent"  # watches begin well and then say nothing, not even bookmarks
    FAILING = "failing"  # the watch failed again and again


@dataclass(slots=True)
class ReflectorStatus:
    """Written by one reflector, read by anybody."""

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
        """How long ago what is held was surely what there is; infinite before the first list."""
        return inf if not self.synced or self.last_contact is None else now - self.last_contact
