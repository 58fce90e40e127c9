"""Provided certificates of callers: a caller must show the certificate in the Secret of its name.

A provided authority may sign any name for anyone, but only the owners of the operator's namespace write its Secrets.
This is the sink of a reflector, and pure: the time is a parameter. The leader also writes the previous certificates to
a Secret, for replicas that start while pods still show them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from fairlead.documents import Document, Format
from fairlead.kube.watch.secrets import PublicSecret
from fairlead.kube.watch.store import EventSink, Key
from fairlead.pki import parsing
from fairlead.render.object_names import PREVIOUS_SECRET

LOG: Final = logging.getLogger(__name__)
PREVIOUS_FOR: Final = timedelta(days=1)
"""How long a previous certificate is accepted: pods get a new one within minutes, copies by hand take longer."""
CERTIFICATES_MAX: Final = 4
"""The Secret with the previous certificates."""
_Previous = dict[str, dict[str, datetime]]
_remembered: Final = msgspec.json.Decoder(_Previous).decode


def _decode(content: bytes) -> _Previous:
    found = _remembered(content or b"{}")
    if any(until.tzinfo is None for leaves in found.values() for until in leaves.values()):
        raise ValueError("a time has no zone")
    return found


PREVIOUS: Final = Format(
    "the previous certificates of callers", _decode, "delete it, and callers need the certificates in their Secrets"
)


@dataclass(slots=True)
class PeerCertificates(EventSink):
    """Accepted certificates by Secret: fingerprints, the newest first, and until when each is accepted.

    When a Secret is deleted, its certificates are refused at once. An unreadable certificate changes nothing.
    """

    now: Callable[[], datetime]
    document: Document[_Previous] = field(default_factory=Document)
    """The Secret with the previous certificates."""
    _remembered: _Previous = field(default_factory=dict)
    _of: _Previous = field(default_factory=dict)

    def holds(self, secret: str, leaf: str) -> bool:
        """Return whether a certificate is in a Secret, or was lately. Its expiry is not checked here."""
        if (accepted := self._of.get(secret)) is None:
            return False
        until = accepted.get(leaf) or self._remembered.get(secret, {}).get(leaf)
        return until is not None and self.now() < until

    def before(self) -> _Previous:
        """Return the previous certificates to write."""
        now, found = self.now(), _Previous()
        for name, accepted in self._of.items():
            last, *others = accepted.items()
            known = {**self._remembered.get(name, {}), **dict(others)}
            if kept := {leaf: until for leaf, until in known.items() if now < until and leaf != last[0]}:
                found[name] = kept
        return found

    def put(self, secret: PublicSecret) -> None:
        """Take the certificate of a Secret that was added or changed."""
        name, certificate = secret.metadata.name, secret.data.certificate
        if name == PREVIOUS_SECRET:
            self._remember(secret)
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
        ends = self.now() + PREVIOUS_FOR
        kept = {other: min(until, ends) for other, until in before.items() if other != leaf and until > self.now()}
        self._of[name] = {leaf: one.not_valid_after_utc, **dict([*kept.items()][: CERTIFICATES_MAX - 1])}

    def remove(self, key: Key) -> None:
        """Forget the certificates of a Secret that was deleted."""
        self._of.pop(key[1], None)
        self._remembered.pop(key[1], None)
        if key[1] == PREVIOUS_SECRET:
            self.document = Document()

    def _remember(self, secret: PublicSecret) -> None:
        latest, meta = self.now() + PREVIOUS_FOR, secret.metadata
        self.document = PREVIOUS.read_data(
            f"Secret {PREVIOUS_SECRET}", secret.data.before, meta.annotations, meta.resourceVersion
        )
        if (found := self.document.value) is None:
            extra = {"secret": PREVIOUS_SECRET, "error": self.document.fault}
            LOG.warning("certificates_before.unreadable", extra=extra)
            return
        self._remembered = {
            name: {leaf: min(until, latest) for leaf, until in leaves.items()} for name, leaves in found.items()
        }
