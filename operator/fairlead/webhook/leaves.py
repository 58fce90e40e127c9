"""Which certificate is whose, where others make them: the one in the Secret of its name, whatever else they sign.

Their authority may sign any name for anybody; what is in a Secret of the operator's namespace only its owners write.
A sink for a reflector. Pure: the time is given.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from fairlead import pem
from fairlead.cluster.held import Key
from fairlead.cluster.secrets import Shown

LOG: Final = logging.getLogger(__name__)
BEFORE: Final = timedelta(days=1)
"""How long the certificate before counts: a pod has the new one a minute or two later, who copies it by hand later."""
MOST: Final = 4


@dataclass(slots=True)
class Leaves:
    """By the names of Secrets: the fingerprints of their certificates, the last one first, and until when each counts.

    A Secret that is deleted takes them with it at once; one in which no certificate can be read changes nothing.
    """

    now: Callable[[], datetime]
    _of: dict[str, dict[str, datetime]] = field(default_factory=dict)

    def holds(self, secret: str, leaf: str) -> bool:
        """Whether that is the certificate in there, or was a moment ago. When it ends is not looked at here."""
        until = self._of.get(secret, {}).get(leaf)
        return until is not None and self.now() < until

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, secret: Shown) -> None:
        """A Secret came or changed."""
        name, certificate = secret.metadata.name, secret.data.certificate
        if not certificate:
            return
        try:
            one = x509.load_pem_x509_certificates(certificate)[0]
        except ValueError:
            LOG.warning("a Secret's certificate cannot be read; the one before counts", extra={"secret": name})
            return
        leaf, before = pem.fingerprint(one.public_bytes(Encoding.DER)), self._of.get(name, {})
        last = next(iter(before), "")
        if leaf == last:
            return
        if last:
            LOG.info("a Secret has another certificate", extra={"secret": name, "leaf": leaf, "before": last})
        ends = self.now() + BEFORE
        kept = {other: min(until, ends) for other, until in before.items() if other != leaf and until > self.now()}
        self._of[name] = {leaf: one.not_valid_after_utc, **dict([*kept.items()][: MOST - 1])}

    def remove(self, key: Key) -> None:
        """A Secret was deleted."""
        self._of.pop(key[1], None)
