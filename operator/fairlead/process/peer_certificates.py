"""Which certificate is whose, where others make them: the one in the Secret of its name, whatever else they sign.

Their authority may sign any name for anybody; what is in a Secret of the operator's namespace only its owners write.
A sink for a reflector. Pure: the time is given. What was there before is remembered in a Secret, too, that the leader
writes: for replicas that start while pods still show it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from fairlead.kube.watch.secrets import Shown
from fairlead.kube.watch.store import Key
from fairlead.pki import parsing

LOG: Final = logging.getLogger(__name__)
BEFORE: Final = timedelta(days=1)
"""How long the certificate before counts: a pod has the new one a minute or two later, who copies it by hand later."""
MOST: Final = 4
REMEMBERED: Final = "fairlead-certificates-before"
"""The Secret that says which."""
_Before = dict[str, dict[str, datetime]]
_remembered: Final = msgspec.json.Decoder(_Before).decode


@dataclass(slots=True)
class PeerCertificates:
    """By the names of Secrets: the fingerprints of their certificates, the last one first, and until when each counts.

    A Secret that is deleted takes them with it at once; one in which no certificate can be read changes nothing.
    """

    now: Callable[[], datetime]
    written: _Before = field(default_factory=dict)
    """What the Secret that remembers says."""
    _remembered: _Before = field(default_factory=dict)
    _of: _Before = field(default_factory=dict)

    def holds(self, secret: str, leaf: str) -> bool:
        """Whether that is the certificate in there, or was a moment ago. When it ends is not looked at here."""
        if (there := self._of.get(secret)) is None:
            return False
        until = there.get(leaf) or self._remembered.get(secret, {}).get(leaf)
        return until is not None and self.now() < until

    def before(self) -> _Before:
        """What is to be remembered."""
        now, found = self.now(), _Before()
        for name, there in self._of.items():
            last, *others = there.items()
            known = {**self._remembered.get(name, {}), **dict(others)}
            if kept := {leaf: until for leaf, until in known.items() if now < until and leaf != last[0]}:
                found[name] = kept
        return found

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, secret: Shown) -> None:
        """A Secret came or changed."""
        name, certificate = secret.metadata.name, secret.data.certificate
        if name == REMEMBERED:
            self._remember(secret.data.before)
        if not certificate:
            return
        try:
            one = x509.load_pem_x509_certificates(certificate)[0]
        except (ValueError, x509.InvalidVersion):
            LOG.warning("certificate.unreadable", extra={"secret": name})
            return
        leaf, before = parsing.fingerprint(one.public_bytes(Encoding.DER)), self._of.get(name, {})
        last = next(iter(before), "")
        if leaf == last:
            return
        if last:
            LOG.info("certificate.changed", extra={"secret": name, "leaf": leaf, "before": last})
        ends = self.now() + BEFORE
        kept = {other: min(until, ends) for other, until in before.items() if other != leaf and until > self.now()}
        self._of[name] = {leaf: one.not_valid_after_utc, **dict([*kept.items()][: MOST - 1])}

    def remove(self, key: Key) -> None:
        """A Secret was deleted."""
        self._of.pop(key[1], None)
        self._remembered.pop(key[1], None)
        if key[1] == REMEMBERED:
            self.written = {}

    def _remember(self, said: bytes) -> None:
        latest = self.now() + BEFORE
        try:
            found = _remembered(said)
            self._remembered = {
                name: {leaf: min(until, latest) for leaf, until in leaves.items()} for name, leaves in found.items()
            }
            self.written = found
        except (msgspec.DecodeError, TypeError) as error:  # a TypeError is a time without a zone
            LOG.warning("certificates_before.unreadable", extra={"secret": REMEMBERED, "error": str(error)})
