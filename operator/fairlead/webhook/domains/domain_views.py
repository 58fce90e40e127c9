"""Views of the ledgers of groups, and the domain that a group has by them.

What filter sees is advice: an entry whose state is unclear counts as over there. A bind reads the pods of such entries
where they name another domain.
"""

from typing import Final

from fairlead.grants.entry import Domain
from fairlead.grants.entry_state import EntryState, Gone, PodState, judge
from fairlead.grants.group_domain import GroupFacts, common_domain
from fairlead.grants.ledger import Ledger
from fairlead.webhook.binding.api_calls import PodViews


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
