"""How many connections each port takes, and how long those wait that nobody knows yet. Pure.

A connection over TLS costs up to 160 KiB for as long as it is there, a handshake a millisecond of the one thread that
answers schedulers; one that has said nothing yet costs neither.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one port. `..._each` is of one address."""

    served: int
    """Connections that have been let in."""
    served_each: int
    coming: int
    """Connections that have not: they have said nothing yet, or wait for their handshake."""
    coming_each: int
    handshakes: int
    """At once. What comes in meanwhile waits for its turn."""
    handshakes_each: int
    unread: int | None = None
    """Bytes that wait in the kernel until they are read, and so are looked at at one stretch: it may take up to twice
    as many. None: as many as it likes."""
    coming_s: float = 5.0
    """How long one may say nothing, and wait."""
    handshake_s: float = 5.0
    """How long a handshake may take..."""
    late_s: float = 1.0
    """...while others of its address wait for its place: a scheduler has given up by then. The same where somebody of
    its address is known, and others wait..."""
    hurried_s: float = 0.25
    """...and elsewhere, while somebody waits from where fewer are, or who is known."""


UNREAD: Final = 16384
"""Where everybody may come in. A client of TLS changes its keys with 27 bytes, which takes us 15 microseconds."""
WEBHOOK: Final = Limits(served=1024, served_each=256, coming=512, coming_each=128, handshakes=16, handshakes_each=8)
"""Schedulers: each has one call of filter at a time, and as many of bind as pods that it places at once. A scheduler
keeps up to 100 idle ones, and schedulers of the host's network have one address."""
ADMISSION: Final = Limits(
    served=64, served_each=16, coming=64, coming_each=16, handshakes=4, handshakes_each=2, unread=UNREAD
)
"""API servers: five at most, each with one connection for each policy that is applied at this moment."""
PROBES: Final = Limits(
    served=64, served_each=16, coming=64, coming_each=16, handshakes=16, handshakes_each=16, unread=UNREAD
)
"""The kubelet, and who reads metrics."""
IDLE_S: Final = 10.0
"""On the ports that everybody may reach: from the end of one request to the end of the next one's head."""
