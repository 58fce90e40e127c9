"""Our own certificate authority, as the Secret holds it: which certificates are in it says how far a rotation is. Pure.

tls               nothing is under way
tls next          Introduced: all are to trust both before anybody shows what `next` has signed
tls previous      Switched: `tls` is the new one, and all that was signed by the old one is issued anew
tls retired       Narrowed: schedulers start with the new one alone; when all have, nobody shows the old one
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from fairlead.pki import issuing, parsing
from fairlead.pki.issuing import Pair

SECRET: Final = "fairlead-ca"  # noqa: S105  a name
"""What it is called."""
LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=30)


class Phase(StrEnum):
    """How far a rotation is."""

    STABLE = "Stable"
    INTRODUCED = "Introduced"
    SWITCHED = "Switched"
    NARROWED = "Narrowed"


class AuthorityError(ValueError):
    """What the Secret holds is no authority; says which of its keys, and what to do."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who signs, and who is trusted."""

    signing: Pair
    next: Pair | None = None
    previous: bytes | None = None
    retired: bytes | None = None

    @property
    def phase(self) -> Phase:
        """How far a rotation is."""
        if self.next is not None:
            return Phase.INTRODUCED
        if self.previous is not None:
            return Phase.SWITCHED
        return Phase.STABLE if self.retired is None else Phase.NARROWED

    @property
    def client_ca_bundle(self) -> bytes:
        """The authorities of callers, for replicas, and of replicas, for the operator."""
        return self._bundle(self.retired)

    @property
    def server_ca_bundle(self) -> bytes:
        """The authorities of replicas, for schedulers, which read them once, when they start."""
        return self._bundle(None)

    @property
    def leaving(self) -> bytes:
        """The certificate of the one that signs, or of the one that it has replaced."""
        return self.previous or self.retired or self.signing.certificate

    def becomes(self, phase: Phase, new: Callable[[], Pair]) -> "Authority":
        """The next phase; `new` makes another authority where it takes one."""
        if phase is Phase.INTRODUCED:
            return replace(self, next=new())
        if phase is Phase.SWITCHED and self.next is not None:
            return Authority(self.next, previous=self.signing.certificate)
        if phase is Phase.NARROWED:
            return Authority(self.signing, retired=self.previous)
        return Authority(self.signing)

    def data(self) -> dict[str, bytes]:
        """As the Secret holds it."""
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
    """Another authority. The day is for people: what counts is the key."""
    return issuing.create_authority(f"fairlead-ca {now:%Y-%m-%d}", now, LIFE)


def read(data: Mapping[str, bytes]) -> Authority:
    """What a Secret holds. Raises AuthorityError."""
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
