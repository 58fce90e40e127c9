"""Refused connections and calls: counted by reason, remembered by address for the leader, and logged now and then."""

import logging
from collections.abc import Mapping
from time import monotonic, perf_counter_ns
from typing import Final

from fairlead.logs import RateLimiter
from fairlead.metrics import Metrics
from fairlead.webhook.extender.callers import RefusedConnections
from fairlead.webhook.https.tls import DISTRUSTED

LOG: Final = logging.getLogger(__name__)
_TRUSTED_AFTER_S: Final = 60.0
"""Time in which a leader is elected and has made the API server trust the admission check."""


class Refusals:
    """Refusals of one process, on all of its ports."""

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.counter(
            "fairlead_webhook_refused", "Connections and calls that were refused, by the reason.", "reason"
        )
        self._connections = RefusedConnections()
        self._rate_limiter = RateLimiter()
        self._started = monotonic()

    def add(self, reason: str, peer: str) -> None:
        """Take a connection or a call that is refused."""
        self._count.add(reason)
        self._connections.add(peer, reason, perf_counter_ns())
        if (more := self._rate_limiter.allow(reason)) is not None:
            # the API server trusts the admission check only once the first leader has told it the authority
            is_early = reason == f"admission: {DISTRUSTED}" and monotonic() - self._started < _TRUSTED_AFTER_S
            LOG.log(
                logging.INFO if is_early else logging.WARNING,
                "connection.refused",
                extra={"reason": reason, "peer": peer, **more},
            )

    def recent(self) -> Mapping[str, str]:
        """Return the reasons of recent refusals by address."""
        return self._connections.recent(perf_counter_ns())
