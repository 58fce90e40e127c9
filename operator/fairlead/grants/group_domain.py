"""Domain of a group: the values of labels that the nodes of its members share, as the group's ledger has them.

Each member has an entry with the domain of its node, and all entries in force agree: where two name the same label,
they have one value of it. So they name one domain together, also after the policy has got another level to share.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.grants.commit import LedgerRequest, Refused
from fairlead.grants.entry import Domain, LedgerEntry
from fairlead.grants.ledger import Ledger

UNREADABLE: Final = "an entry of the group's ledger cannot be read; remove it once the pod is gone"


class DomainRequest(LedgerRequest, frozen=True, eq=False):
    """Request that a pod be bound to a node of its group's domain."""

    by: str
    """Policy that requires it."""
    domain: Domain
    """That of the node: values by label, the widest level first."""


class RequiredDomain(Struct, frozen=True):
    """Domain of a node that the group of a pod has to share."""

    group: str
    """Namespace and value, with a slash between them."""
    domain: Domain
    by: str
    """Policy that requires it."""


def outside(level: str) -> str:
    """Return why a member may not be on a node outside the domain of its group."""
    return f"not in the group's {level}"


def agrees(domain: Domain, other: Domain) -> bool:
    """Return whether domains have one value of each label that both name."""
    return all(other.get(label, value) == value for label, value in domain.items())


def common_domain(domains: Iterable[Domain]) -> Domain | None:
    """Return the domain that entries in force name together; None without any."""
    found = dict[str, str]()
    for one in domains:
        found |= one
    return found or None


class GroupFacts:
    """Facts about any group: none but its ledger."""

    def placed_uids(self) -> Iterable[str]:
        """Return none: what an entry promises is not told by where its pod is."""
        return ()

    def differs(self, request: DomainRequest, entry: LedgerEntry, /) -> Refused | None:
        """Return a refusal if the entry of this version is for another domain, in which the pod may be bound yet."""
        return None if request.domain == entry.domain else _refusal(request)

    def promises(self, ledger: Ledger, over: frozenset[str], /) -> "DomainPromises":
        """Return the domains that entries in force name."""
        return DomainPromises(
            {uid: one.domain for uid, one in ledger.entries.items() if uid not in over},
            is_readable=ledger.unreadable.keys() <= over,
        )


class DomainPromises:
    """Domain of a group by the entries in force."""

    def __init__(self, domains: Mapping[str, Domain], *, is_readable: bool) -> None:
        """`domains` are those of entries, by the UID of their pod."""
        self._domains, self._is_readable = dict(domains), is_readable

    def take_back(self, uid: str, _entry: LedgerEntry, /) -> None:
        """Forget an entry that is over."""
        self._domains.pop(uid, None)

    def add(self, request: DomainRequest, _known: Mapping[str, LedgerEntry], order: int, /) -> LedgerEntry | Refused:
        """Add an entry for a domain with which all others agree."""
        if not self._is_readable:
            return Refused(UNREADABLE)
        if not all(agrees(one, request.domain) for one in self._domains.values()):
            return _refusal(request)
        self._domains[request.uid] = request.domain
        return LedgerEntry(request.pod, request.rv, request.by, order=order, domain=request.domain)


def _refusal(request: DomainRequest) -> Refused:
    return Refused(outside([*request.domain][-1]))
