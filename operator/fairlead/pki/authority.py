"""Our own certificate authority, as its Secret has it: the keys of the Secret are the phase of a rotation. Pure.

tls               Stable: no rotation
tls next          Introduced: all must trust both before a certificate that `next` signed is used
tls previous      Switched: `tls` is the new authority, and certificates of the old one are issued again
tls retired       Narrowed: schedulers start with the new authority only; then certificates of the old one are unused

Certificates that it signs are renewed at two thirds of their lifetime, when the authority is another one, and when the
clock that they were issued by was ahead: else nothing would trust them until that time has come.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from fairlead.pki import issuing, parsing
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, Purpose, issue_leaf
from fairlead.pki.parsing import CertificateInfo, read_certificate

LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=30)


class Phase(StrEnum):
    """Phase of a rotation."""

    STABLE = "Stable"
    INTRODUCED = "Introduced"
    SWITCHED = "Switched"
    NARROWED = "Narrowed"


class AuthorityError(ValueError):
    """Secret without a usable authority; the message names the key and what to do."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Certificate authority, with the certificates that a rotation adds."""

    signing: Pair
    next: Pair | None = None
    previous: bytes | None = None
    retired: bytes | None = None

    @property
    def phase(self) -> Phase:
        """Phase of a rotation."""
        if self.next is not None:
            return Phase.INTRODUCED
        if self.previous is not None:
            return Phase.SWITCHED
        return Phase.STABLE if self.retired is None else Phase.NARROWED

    @property
    def client_ca_bundle(self) -> bytes:
        """Authorities by which replicas verify callers, and the operator verifies replicas."""
        return self._bundle(self.retired)

    @property
    def server_ca_bundle(self) -> bytes:
        """Authorities by which schedulers verify replicas; they read them once, when they start."""
        return self._bundle(None)

    @property
    def leaving(self) -> bytes:
        """Certificate of the authority that is or will be replaced."""
        return self.previous or self.retired or self.signing.certificate

    def becomes(self, phase: Phase, new: Callable[[], Pair]) -> "Authority":
        """Return the authority in another phase; `new` creates the authority that Introduced adds, or replaces."""
        if phase is Phase.INTRODUCED:
            return Authority(self.signing, next=new())
        if phase is Phase.SWITCHED and self.next is not None:
            return Authority(self.next, previous=self.signing.certificate)
        if phase is Phase.NARROWED:
            return Authority(self.signing, retired=self.previous)
        return Authority(self.signing)

    def data(self) -> dict[str, bytes]:
        """Return the data of the Secret."""
        held = {"tls.crt": self.signing.certificate, "tls.key": self.signing.key}
        if self.next is not None:
            held |= {"next.crt": self.next.certificate, "next.key": self.next.key}
        if self.previous is not None:
            held["previous.crt"] = self.previous
        if self.retired is not None:
            held["retired.crt"] = self.retired
        return held

    def _bundle(self, also: bytes | None) -> bytes:
        found = (self.signing.certificate, self.next and self.next.certificate, self.previous, also)
        return parsing.bundle(one for one in found if one)


def new(now: datetime) -> Pair:
    """Create an authority. The date in its name is for people: authorities are identified by their keys."""
    return issuing.create_authority(f"fairlead-ca {now:%Y-%m-%d}", now, LIFE)


def read(data: Mapping[str, bytes]) -> Authority:
    """Read the data of a Secret. Raises AuthorityError."""
    signing = _pair(data, "tls")
    if signing is None:
        raise AuthorityError("tls.crt is missing: restore it, or delete the Secret for a new authority")
    extra = sorted(name for name in ("next.crt", "previous.crt", "retired.crt") if name in data)
    if len(extra) > 1:
        raise AuthorityError(f"{' and '.join(extra)} never occur together: remove all but {extra[-1]}")
    for name in ("previous.crt", "retired.crt"):
        if name in data:
            _checked(name, data[name])
    return Authority(signing, _pair(data, "next"), data.get("previous.crt"), data.get("retired.crt"))


def _pair(data: Mapping[str, bytes], name: str) -> Pair | None:
    certificate, key = data.get(f"{name}.crt"), data.get(f"{name}.key")
    if certificate is None and key is None:
        return None
    for suffix, content in (("crt", certificate), ("key", key)):
        if not content:
            raise AuthorityError(f"{name}.{suffix} is missing: restore it, or delete the Secret for a new authority")
    pair = Pair(certificate or b"", key or b"")
    _checked(f"{name}.crt", pair.certificate)
    if not issuing.belong_together(pair):
        raise AuthorityError(f"{name}.key is not the key of {name}.crt: restore it, or delete the Secret")
    return pair


def _checked(name: str, content: bytes) -> None:
    if not issuing.is_authority(content):
        raise AuthorityError(f"{name} holds no certificate of an authority in PEM: restore it, or delete the Secret")


def renewal_time(begins: datetime, ends: datetime, serial: int) -> datetime:
    """Return the time of renewal: at two thirds of the lifetime, or up to a tenth of the lifetime earlier.

    The serial number decides, so that renewals are spread, and every replica computes the same time.
    """
    return begins + (ends - begins) * (2 / 3 - (serial % 1000) / 10_000)


def renewal_reason(
    leaf: CertificateInfo | None, authority: Authority, name: str, hosts: frozenset[str], now: datetime
) -> str:
    """Return why a certificate has to be renewed; "" if it need not be."""
    if leaf is None:
        return "there is no certificate"
    if leaf.issuer != read_certificate(authority.signing.certificate).key:
        return "another authority signs now" if leaf.issuer else "our authority has not signed it"
    if leaf.name != name:
        return f"it is for {leaf.name}"
    if leaf.hosts != hosts:
        return "it is for other hosts"
    if now < leaf.begins:
        return "it is not valid yet: the clock was ahead when it was issued"
    if now >= renewal_time(leaf.begins, leaf.ends, leaf.serial):
        return "two thirds of its lifetime are over"
    return ""


def current_leaf(
    authority: Authority, name: str, purpose: Purpose, hosts: frozenset[str], now: datetime, pair: Pair | None
) -> Pair:
    """Return the certificate of a replica or of the operator: the held one while it is good, else a new one."""
    leaf = read_certificate(pair.certificate, [authority.client_ca_bundle]) if pair is not None else None
    if pair is not None and not renewal_reason(leaf, authority, name, hosts, now):
        return pair
    return issue_leaf(authority.signing, name, purpose, now, LEAF_LIFE, sorted(hosts))


def scheduler_data(authority: Authority, scheduler: str, now: datetime) -> dict[str, bytes]:
    """Return the data of a scheduler's Secret, with a new certificate."""
    pair = issue_leaf(authority.signing, scheduler_identity(scheduler), "client", now, LEAF_LIFE)
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.server_ca_bundle}


def server_hosts(service: str, namespace: str, addresses: frozenset[str]) -> frozenset[str]:
    """Return the hosts of a replica's certificate: the Service for schedulers, its own addresses for the leader."""
    name = f"{service}.{namespace}.svc"
    return frozenset({name, f"{name}.cluster.local"}) | addresses
