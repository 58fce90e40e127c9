"""Views of the ledgers of groups, and the domain that a group has by them.

What filter sees is advice: an entry whose state is unclear counts as over there. A bind reads the pods of such entries
where they name another domain.
"""

from typing import Final

from fairlead.grants.entry import Domain
from fairlead.grants.entry_state import EntryState, Gone, PodState, judge
from fairlead.grants.group_domain import GroupFacts, common_domain
from fairlead.grants.ledger import Ledger
from fairlead.strategies.domains import Values
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import PodViews

LATELY_NS: Final = 2 * SECOND_NS
"""Time in which the ledger shows the domain that the first member of a group is bound in."""
_LATELY_MAX: Final = 1000
_NO_VALUES: Final[Values] = frozenset()


class DomainsLately:
    """Domains that held groups a moment ago.

    Between the call of the first member and the moment when its entry is seen, the scheduler has members on nodes that
    no view shows. They are missing in the next call, and so would the domain be that the group is about to fill.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, Values]] = {}

    def put(self, group: str, domains: Values, at: int) -> None:
        """Keep the domains of a group for a while, from this moment on; the first single one, if there is one."""
        if len(self.of(group, at)) == 1:
            return
        self._of.pop(group, None)
        if len(self._of) >= _LATELY_MAX:
            del self._of[next(iter(self._of))]
        self._of[group] = at + LATELY_NS, domains

    def of(self, group: str, at: int) -> Values:
        """Return the domains of a group at a moment; none if there were none lately."""
        until, domains = self._of.get(group, (0, _NO_VALUES))
        return domains if at < until else _NO_VALUES


class DomainViews:
    """Views of the ledgers of groups."""

    def __init__(self, pods: PodViews) -> None:
        self._pods, self._facts = pods, GroupFacts()
        self.ledgers: Final[dict[str, Ledger]] = {}
        """Ledgers by group, as a watch has shown them."""
        self._over: dict[str, tuple[str, set[str]]] = {}
        """Entries that were seen to be over, by group, with the version of its ledger: they stay so."""

    def ledger(self, group: str) -> Ledger | None:
        """Return a version of the ledger of a group; None if no watch has shown one."""
        return self.ledgers.get(group)

    def facts(self, _group: str) -> GroupFacts:
        """Return what is known of a group."""
        return self._facts

    def pod(self, pod: str) -> PodState | None:
        """Return what is shown under this name."""
        return self._pods.pod(pod)

    def seen(self, uid: str, pod: str) -> PodState | Gone | None:
        """Return what is shown of a UID, that its deletion was heard, or else what is shown under the name."""
        return self._pods.seen(uid, pod)

    def domain_of(self, group: str) -> Domain | None:
        """Return the domain that the members of a group share; None while no entry is known to be in force."""
        ledger = self.ledgers.get(group)
        if ledger is None:
            return None
        version, over = self._over.get(group, ("", set[str]()))
        if version != ledger.rv:
            over = set[str]()
            self._over[group] = ledger.rv, over
        in_force = list[Domain]()
        for uid, entry in ledger.entries.items():
            if uid in over or entry.domain in in_force:
                continue
            state = judge(uid, entry, None, self._pods.seen(uid, entry.pod))
            if state is EntryState.HOLDS:
                in_force.append(entry.domain)
            elif state.is_over:
                over.add(uid)
        return common_domain(in_force)

    def forget(self, group: str) -> None:
        """Forget the ledger of a group, which was deleted."""
        self._over.pop(group, None)
