"""Decision log: keeps decisions for those who ask, and logs them if that is wanted."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from fairlead.metrics import Counter, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.time_units import SECOND_NS
from fairlead.webhook.capability import Capability
from fairlead.webhook.decisions.decision_record import (
    RULES,
    DecisionRecord,
    Effect,
    as_data,
    as_event,
    best_nodes,
    record_of,
    rfc3339,
)
from fairlead.webhook.decisions.kept_decisions import KeptDecisions
from fairlead.webhook.extender.decisions import Decision

LOG: Final = logging.getLogger(__name__)
LoggedDecisions = Literal["None", "Waiting", "All"]
"""Decisions that are logged: none, those that leave a pod without a node, or all."""
LINES_A_SECOND: Final = 50
PART: Final = 128
"""Records that are encoded at a time: calls of schedulers are answered between two parts."""


class DecisionLog(Capability, PodWatcher):
    """Decisions of a replica. Used by the serving event loop only."""

    def __init__(self, mirror: Mirror, now: Callable[[], int], replica: str, logged: LoggedDecisions = "None") -> None:
        """`now` is the time of day in nanoseconds; `replica` names this one to those who ask."""
        self.kept: Final = KeptDecisions()
        self._mirror, self._now, self._replica, self._logged = mirror, now, replica, logged
        self._since = now()
        self._second = self._lines = 0
        self._dropped = Counter(
            "fairlead_decisions_dropped",
            "Decisions that were not logged, because more were made than may be logged in a second.",
        )
        mirror.watchers.add(self)

    def register(self, metrics: Metrics) -> None:
        """Register its metric."""
        metrics.add(self._dropped)

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Forget the effects of policies that are gone."""
        self.kept.retain_policies(frozenset(one.name for one in policies))

    def record(self, decision: Decision) -> None:
        """Record a call, after its reply was sent."""
        outcome = decision.outcome
        if outcome.simulated or not outcome.pod:
            return
        if outcome.verb == "filter" and (made := record_of(decision, self._now())) is not None:
            if outcome.entry != "Ignore":
                self.kept.add(made)
            elif not self.kept.add_second_entry(made):
                return
            if made.is_decided:
                self._log(made)
        elif outcome.verb == "prioritize":
            self._scored(decision)

    def note_effects(self, uid: str, policy: str, effects: Sequence[str], rules: Sequence[str]) -> None:
        """Keep the decision about a pod on which rules in shadow of a policy would have had effects."""
        self.kept.add_effect(uid, Effect(policy, (*effects,), (*rules[:RULES],)))

    def put_placed(self, key: Key, entry: PodEntry) -> None:  # noqa: ARG002 - the entry has it too
        """Learn which node a pod went to."""
        self.kept.set_node(str(entry.pod.metadata.uid), entry.node)

    def parts(self) -> Iterator[bytes]:
        """Yield what is kept as lines of JSON, the newest decisions first, after a line that says since when."""
        head = {"replica": self._replica, "since": rfc3339(self._since), "now": rfc3339(self._now())}
        yield msgspec.json.encode(head) + b"\n"
        records = self.kept.records
        for begin in range(0, len(records), PART):
            yield b"".join([self._line(one) for one in records[begin : begin + PART]])

    def _line(self, record: DecisionRecord) -> bytes:
        pod = None if record.node else self._mirror.unplaced(record.namespace, record.name)
        waits = pod is not None and pod.metadata.uid == record.uid
        return msgspec.json.encode(as_data(record, waits=waits)) + b"\n"

    def _scored(self, decision: Decision) -> None:
        """Add the best nodes to the decision of filter; where no filter decides, this makes it one."""
        considered = decision.considered
        if considered is None or considered.nodes is None or (made := record_of(decision, self._now())) is None:
            return
        if self.kept.add_points(made, best_nodes(considered.nodes, considered.points)):
            self._log(made)

    def _log(self, record: DecisionRecord) -> None:
        if self._logged == "None" or (self._logged == "Waiting" and not record.leaves_no_node):
            return
        second = record.time_ns // SECOND_NS
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines > LINES_A_SECOND:
            self._dropped.add()
        else:
            LOG.info("decision", extra=as_event(record))
