"""Sink of the pods of one scheduler: finds out what each of them tells, and when it tells more. No I/O.

The first look at a pod reads all of it and decides which rules learn from it, and its type for each. Later looks read
what tells outcomes. What a pod has told is remembered as long as it is there, so that it is told once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Raw, Struct

from fairlead.kube.watch.store import Key, ObjectMetadata
from fairlead.learned.learner import PairLearner
from fairlead.learned.outcomes import ObservedPod, PodOutcome, decode_pod, outcomes_of
from fairlead.learned.pair import Observation, node_key, time_of
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.nodes.learned_facts import pod_type
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender import requests
from fairlead.webhook.learning.due_outcomes import DueOutcome, DueOutcomes
from fairlead.webhook.learning.followed_rules import FollowedRule, matching_policies

_TOLD_MAX: Final = 16
"""Ids of one pod: what its state does not show any more is not told again, but for a few."""
_KINDS_MAX: Final = 4096
Kinds: TypeAlias = tuple[tuple[TableOfRule, str], ...]
"""Rules that learn from a pod, each with the type that the pod has for it."""


class WatchedPod(NamedTuple):
    """Pod with the bytes that it was read from."""

    pod: ObservedPod
    raw: Raw

    @property
    def metadata(self) -> ObjectMetadata:
        """Return its metadata."""
        return self.pod.metadata


def watched_pod(raw: Raw) -> WatchedPod:
    """Decode the part of a pod that tells outcomes."""
    return WatchedPod(decode_pod(raw), raw)


class _Settling(Struct, gc=False):
    """Rules with one time to settle, and what they know of the pod."""

    settle_s: int
    kinds: Kinds
    ids: tuple[str, ...] = ()
    """Ids of the outcomes that the pod has told."""


class _Known(Struct, gc=False):
    """Pod that was looked at."""

    uid: str
    node: str
    """Key of the UID of its node."""
    settling: tuple[_Settling, ...]


class OutcomeSink:
    """Sink of the pods of one scheduler."""

    def __init__(
        self,
        scheduler: str,
        nodes: Nodes,
        namespace: Callable[[str], Any | None],
        now: Callable[[], int],
        on_outcome: Callable[[FollowedRule, float], None],
    ) -> None:
        """`now` is in nanoseconds; `on_outcome` is called with each outcome that a list did not bring."""
        self._scheduler, self._nodes, self._namespace, self._now = scheduler, nodes, namespace, now
        self._on_outcome = on_outcome
        self._learners: Mapping[TableOfRule, PairLearner] = {}
        self._rules: Mapping[TableOfRule, FollowedRule] = {}
        self._policies: PolicySet = PolicySet()
        self._known: dict[Key, _Known] = {}
        self._due = DueOutcomes()
        self._kinds: dict[Kinds, Kinds] = {}
        self._is_listing = False

    @property
    def pods(self) -> int:
        """Return the number of pods that it knows."""
        return len(self._known)

    def set_rules(self, rules: Sequence[FollowedRule], learners: Mapping[TableOfRule, PairLearner]) -> bool:
        """Learn for these rules from now on; return whether all pods have to be looked at again."""
        before = [one.watched for one in self._rules.values()]
        self._rules, self._learners = {one.table: one for one in rules}, learners
        self._policies = matching_policies(rules)
        if before == [one.watched for one in self._rules.values()]:
            return False
        self._known.clear()
        self._due.clear()
        self._kinds.clear()
        self._list(is_listing=True)
        return True

    def begin(self) -> None:
        """Begin a list."""
        self._list(is_listing=True)

    def end(self) -> None:
        """End a list: what it brought can be published."""
        self._list(is_listing=False)

    def _list(self, *, is_listing: bool) -> None:
        self._is_listing = is_listing
        for table in self._rules:
            learner = self._learners[table]
            (learner.begin_list if is_listing else learner.end_list)()

    def put(self, item: WatchedPod, /) -> None:
        """Look at a pod."""
        pod, metadata = item.pod, item.pod.metadata
        if not pod.spec.nodeName:
            return
        key = metadata.namespace, metadata.name
        known = self._known.get(key)
        if known is None or known.uid != metadata.uid:
            known = self._first_look(item)
            if known is None:
                return
            self._known[key] = known
        if known.settling:
            self._look(key, pod, known)

    def remove(self, key: Key, /) -> None:
        """Forget a pod that is gone."""
        self._known.pop(key, None)
        self._due.set(key, ())

    def tell_due(self) -> None:
        """Tell the outcomes whose time has come."""
        now = self._now() // SECOND_NS
        for due in self._due.take(now):
            known = self._known.get(due.pod)
            if known is not None and known.uid == due.uid:
                self._tell(due.pod[0], known, known.settling[due.place], [due.outcome], now)

    def _first_look(self, item: WatchedPod) -> _Known | None:
        """Decide which rules learn from a pod; None if that has to wait for something that is not known yet."""
        observed = item.pod
        node = self._nodes.view_of(observed.spec.nodeName)
        if node is None:
            return None
        try:
            pod = requests.decode_pod(item.raw)
        except requests.UNREADABLE:
            return _Known(observed.metadata.uid, "", ())
        view = PodView(pod, self._namespace(str(pod.metadata.namespace)))
        matched = self._policies.matching(view, self._scheduler, self._now())
        if any(each.undecided is not None and not view.knows_namespace for each in matched):
            return None
        names = {each.policy.name for each in matched if each.undecided is None}
        by_settle: dict[int, list[tuple[TableOfRule, str]]] = {}
        for table, one in self._rules.items():
            if one.policy.name in names:
                kind = pod_type(one.outcomes, view, table.rule)
                if isinstance(kind, str) and kind:
                    by_settle.setdefault(one.outcomes.settle_s, []).append((table, kind))
        settling = [_Settling(settle_s, self._shared(tuple(kinds))) for settle_s, kinds in by_settle.items()]
        return _Known(observed.metadata.uid, node_key(node.uid), tuple(settling))

    def _shared(self, kinds: Kinds) -> Kinds:
        if len(self._kinds) >= _KINDS_MAX:  # every pod may have a type of its own
            self._kinds.clear()
        return self._kinds.setdefault(kinds, kinds)

    def _look(self, key: Key, pod: ObservedPod, known: _Known) -> None:
        now = self._now() // SECOND_NS
        node = self._nodes.view_of(pod.spec.nodeName)
        ready = None if node is None else node.condition("Ready")
        waiting = list[DueOutcome]()
        for place, each in enumerate(known.settling):
            told = outcomes_of(pod, each.settle_s, now, node_is_ready=ready is not None and ready.status == "True")
            self._tell(key[0], known, each, told.outcomes, now)
            waiting += [DueOutcome(one.at, key, known.uid, place, one) for one in told.later if one.id not in each.ids]
        self._due.set(key, waiting)

    def _tell(
        self, namespace: str, known: _Known, settling: _Settling, outcomes: Sequence[PodOutcome], now: int
    ) -> None:
        fresh = [one for one in outcomes if one.id not in settling.ids]
        if not fresh:
            return
        settling.ids = (*settling.ids, *(one.id for one in fresh))[-_TOLD_MAX:]
        listed = self._is_listing
        for outcome in fresh:
            at = time_of(outcome.at, now, listed=listed)
            if at is None:
                continue
            for table, kind in settling.kinds:
                self._learners[table].observe(
                    Observation(kind, namespace, known.node, at, outcome.id, outcome.reward, listed)
                )
                if not listed:
                    self._on_outcome(self._rules[table], outcome.reward)
