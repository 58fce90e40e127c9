"""Interleavings of replicas that bind members of one group, whose policy requires that they share a domain."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from fairlead.grants.commit import Refused
from fairlead.grants.device_usage import Ask, DeviceUsage
from fairlead.grants.entry import Domain, Grant, LedgerEntry
from fairlead.grants.entry_state import GONE, EntryState, PodState, judge_read
from fairlead.grants.group_domain import DomainRequest, GroupFacts, RequiredDomain, agrees
from fairlead.grants.ledger import OF_GROUPS, create_body
from fairlead.webhook.binding.api_calls import Conflicting, Missing, Posted
from fairlead.webhook.binding.bind_steps import BindSteps, PodBind, PodDevices
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.poster import Poster
from support.grants.api_server import ApiServer
from support.grants.explorer import PODS, STEPS, Case, run
from support.grants.replica import READS_MAX, AgedViews, Replica, Sent
from support.interleavings import Explorer, PromiseBrokenError

GROUP: Final = "ns/job"
LABELS: Final[Mapping[str, Domain]] = {
    "node-1": {"block": "1", "rack": "1"},
    "node-2": {"block": "1", "rack": "2"},
    "node-3": {"block": "2", "rack": "1"},
    "node-4": {"block": "1", "rack": "1"},
}
LEVELS: Final = (("block",), ("block", "rack"))
_BITS: Final = 48


class GroupServer(ApiServer):
    """An API server with the ledger of one group."""

    kind = OF_GROUPS

    def __init__(self, *, numbers: bool) -> None:
        super().__init__({}, numbers=numbers)
        self.domain_of: dict[str, Domain] = {}
        """Domains that Bindings were posted for, by the UID of the pod."""

    def list_pods(self, _subject: str) -> list[PodState]:
        return [*self.pods.values()]

    def post_binding(self, binding: Mapping[str, Any]) -> Posted | Missing | Conflicting:
        outcome = super().post_binding(binding)
        if isinstance(outcome, Posted):
            self._check_binding(binding["metadata"]["uid"], binding["target"]["name"])
        return outcome

    def _check_binding(self, uid: str, node: str) -> None:
        ledger = self.ledgers.get(GROUP)
        entry = None if ledger is None else ledger.all.get(uid)
        if not isinstance(entry, LedgerEntry):
            if entry is None:
                raise PromiseBrokenError(f"{uid} is bound to {node} without an entry")
            return  # a person wrote in it, or another version
        if not entry.domain.items() <= LABELS[node].items():
            raise PromiseBrokenError(f"{uid} is bound to {node}; its entry is for {entry.domain}")
        self.domain_of[uid] = entry.domain
        assert ledger is not None
        for other, one in ledger.entries.items():
            state = judge_read(other, one, None, self.pods.get(one.pod, GONE))
            if state is EntryState.HOLDS and not agrees(one.domain, entry.domain):
                raise PromiseBrokenError(f"{uid} is bound to {node} in {entry.domain}; {other} is for {one.domain}")
        self.check()

    def check(self) -> None:
        running = [one for one in self.pods.values() if one.node and not one.ended and one.uid in self.domain_of]
        for one, other in combinations(running, 2):
            if not agrees(self.domain_of[one.uid], self.domain_of[other.uid]):
                raise PromiseBrokenError(f"{one.uid} runs on {one.node}, {other.uid} on {other.node}")
        for ledger in self.ledgers.values():
            for uid, other_uid in combinations(ledger.entries, 2):
                if not agrees(ledger.entries[uid].domain, ledger.entries[other_uid].domain):
                    raise PromiseBrokenError(f"entries name two domains: {ledger.entries}")


class GroupViews(AgedViews):
    """Views of the ledger of a group."""

    def facts(self, _subject: str) -> Any:
        return GroupFacts()


class NoDevices(PodDevices):
    """Devices of a pod that requests none."""

    by = ""
    ask: Ask = ()

    def choose(self, _usage: DeviceUsage, _entries: Mapping[str, LedgerEntry], /) -> Grant | Refused:
        raise AssertionError("it requests none")

    def is_for(self, _state: PodState, /) -> bool:
        return True

    def annotations(self, _entry: LedgerEntry | None, /) -> Mapping[str, str]:
        return {}


class GroupReplica(Replica):
    """A replica, by whose policy members share a level."""

    level: Sequence[str] = LEVELS[1]

    def __init__(self, name: str, server: ApiServer, sent: list[Sent], pods_at: int, ledgers_at: int) -> None:
        super().__init__(name, server, sent, pods_at, ledgers_at)
        self.views = GroupViews(server, pods_at, ledgers_at)
        reads_max = READS_MAX[ord(name) % len(READS_MAX)]
        self.steps = BindSteps(self.ledgers, self.calls, self.views)
        self.steps.domains = LedgerWriter[DomainRequest](self.calls, self.views, reads_max, kind=OF_GROUPS)

    def domain(self, node: str) -> Domain:
        """Return the domain that members on a node have to share."""
        return {label: LABELS[node][label] for label in self.level}

    def pod_bind(self, pod: PodState, node: str, poster: Poster) -> PodBind:
        domains = (RequiredDomain(GROUP, self.domain(node), self.name),)
        return PodBind(pod.uid, pod.pod, node, NoDevices(), poster, domains=domains)


class GroupCase(Case):
    """One interleaving of binds of the members of a group."""

    def prepare(self) -> None:
        self.nodes = [*LABELS]
        self.server = GroupServer(numbers=self.draw(6) > 0)
        self.server.gone_nodes.add(GROUP)
        self.requests = {pod: {} for pod in PODS}
        for pod in PODS:
            self.server.create_pod(pod, {})
        if self.draw(2):
            self.server.create_ledger(create_body(GROUP, {}, OF_GROUPS))
        self.forgets = False
        self.tampers = self.draw(4) == 0
        levels = self.draw(4)
        self._levels = [LEVELS[1], LEVELS[1], LEVELS[0]] if levels == 0 else [LEVELS[min(levels, 2) - 1]] * 3

    def replica(self, name: str, pods_at: int, ledgers_at: int) -> Replica:
        made = GroupReplica(name, self.server, self.sent, pods_at, ledgers_at)
        made.level = self._levels[ord(name) % len(self._levels)]
        return made

    def node_leaves_or_comes(self) -> None:
        """Have pods end, so that now and then no entry is in force: only they keep the group's ledger."""
        self.kubelet()

    def has_room(self, replica: Replica, _pod: PodState, node: str) -> bool:
        assert isinstance(replica, GroupReplica)
        wanted = replica.domain(node)
        ledger = self.server.ledgers.get(GROUP)
        entries = {} if ledger is None else ledger.entries
        in_force = [
            one.domain
            for uid, one in entries.items()
            if judge_read(uid, one, None, self.server.pods.get(one.pod, GONE)) is EntryState.HOLDS
        ]
        return all(agrees(one, wanted) for one in in_force)


def run_case(numbers: Sequence[int], seen: Counter[str], trace: list[str] | None = None) -> None:
    """Run a case and then, without faults, see that members find their domain."""
    run(GroupCase(numbers[0], trace), numbers, seen)


EXPLORER: Final = Explorer(run_case, STEPS, _BITS)

if __name__ == "__main__":
    sys.exit(EXPLORER.main("support.grants.domain_explorer"))
