"""Pods of a scheduler: which rules learn from each, as what type, and what each tells, once."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from fairlead.learned.learner import PairLearner
from fairlead.learned.outcomes import FAILURE, SUCCESS
from fairlead.learned.pair import node_key
from fairlead.mirror import decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.webhook.learning.followed_rules import FollowedRule, followed_rules
from fairlead.webhook.learning.outcome_sink import OutcomeSink, watched_pod
from support.mirror import FedMirror, Object, node, pod, written
from support.policy import NOW, SECOND, policy

SETTLE: Final = 600
START: Final = NOW // SECOND
RUNNING: Final = {"running": {"startedAt": "2027-01-15T08:00:00Z"}}
READY: Final = {"type": "Ready", "status": "True"}


def time(after: int) -> str:
    return datetime.fromtimestamp(START + after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def learns(name: str = "p", uid: str = "", match: Mapping[str, Any] | None = None, **params: Any) -> CompiledPolicy:
    return policy(name, uid=uid, match=match or {}, schedulerName="fairlead", scores={"works": {"kubeRL": params}})


def ran(
    name: str = "web", *, after: int = 0, on: str = "n1", version: int = 1, labels: Any = None, **fields: Any
) -> Object:
    """Return a pod that is ready since a moment."""
    status = {"startTime": time(after), "containerStatuses": [{"name": "main", "restartCount": 0, "state": RUNNING}]}
    made = pod(name, on=on, version=version, labels=labels or {"app": "web"}, conditions=[READY], status=status)
    made["spec"]["schedulerName"] = "fairlead"
    made["metadata"] |= fields
    return made


def failed(name: str = "web", *, at: int, code: int = 1, version: int = 1, **fields: Any) -> Object:
    """Return a pod whose container failed after a second."""
    end = {"exitCode": code, "startedAt": time(at - 1), "finishedAt": time(at), "containerID": f"id-{at}"}
    made = ran(name, version=version, **fields)
    made["status"]["conditions"] = []
    made["status"]["containerStatuses"] = [{"name": "main", "restartCount": 1, "state": {"terminated": end}}]
    return made


class Watch:
    """A sink with learners, in a cluster of two nodes."""

    def __init__(self, *policies: CompiledPolicy) -> None:
        self.now = NOW
        self.mirror = FedMirror().mirror
        for name in ("n1", "n2"):
            ready = {"type": "Ready", "status": "True"}
            self.mirror.node_sink.put(decode.node(written(node(name, conditions=[ready]))))
        self.told: list[tuple[str, float]] = []
        self.sink = OutcomeSink("fairlead", self.mirror.nodes, self.mirror.namespace, lambda: self.now, self._tell)
        self.learners: dict[Any, PairLearner] = {}
        self.follow(*policies or (learns(),))
        self.sink.begin()
        self.sink.end()

    def _tell(self, rule: FollowedRule, reward: float) -> None:
        self.told.append((rule.policy.name, reward))

    def follow(self, *policies: CompiledPolicy) -> bool:
        rules = followed_rules(policies)
        self.learners = {one.table: self.learners.get(one.table) or _learner(one) for one in rules}
        return self.sink.set_rules(rules, self.learners)

    def put(self, *pods: Object) -> None:
        for one in pods:
            self.sink.put(watched_pod(msgspec.Raw(written(one))))

    def pass_time(self, seconds: int) -> None:
        self.now += seconds * SECOND
        self.sink.tell_due()

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        """What would be published: the weight of each type and node."""
        (learner,) = self.learners.values()
        found: dict[tuple[str, str], float] = {}
        for write in learner.writes(self.now // SECOND):
            found |= {key: round(pair.weight, 6) for key, pair in write.written.pairs.items()}
        return found


def _learner(rule: FollowedRule) -> PairLearner:
    made = PairLearner(rule.rule, rule.counting)
    made.versions.is_listed = True
    return made


def of(kind: str, name: str = "n1") -> tuple[str, str]:
    return kind, node_key(f"u-{name}")


def test_a_pod_that_runs_is_a_success_once_it_has_settled() -> None:
    watch = Watch()
    watch.put(ran())
    watch.pass_time(SETTLE - 1)
    assert watch.told == []
    watch.pass_time(1)
    assert (watch.told, watch.pairs) == ([("p", SUCCESS)], {of("ml/web"): 1.0})


@pytest.mark.parametrize("change", ["not ready", "another node", "gone", "made again"])
def test_what_changes_before_the_time_has_come_is_told_as_it_is_then(change: str) -> None:
    watch = Watch()
    watch.put(ran())
    watch.pass_time(SETTLE - 1)
    if change == "not ready":
        unready = ran(version=2)
        unready["status"]["conditions"] = [READY | {"status": "False"}]
        watch.put(unready)
    elif change == "gone":
        watch.sink.remove(("ml", "web"))
    elif change == "made again":
        watch.put(ran(after=SETTLE, version=2, uid="u-2"))
    watch.pass_time(2)
    assert watch.told == ([("p", SUCCESS)] if change == "another node" else [])


def test_a_failure_is_told_once_in_all_states_that_show_it() -> None:
    watch = Watch()
    watch.put(failed(at=5), failed(at=5, version=2), failed(at=5, version=3))
    assert watch.told == [("p", FAILURE)]
    watch.put(failed(at=65, version=4))
    assert watch.told == [("p", FAILURE)] * 2
    assert watch.pairs == {of("ml/web"): pytest.approx(1.998076)}


def test_a_pod_that_was_deleted_tells_by_its_last_state() -> None:
    watch = Watch()
    watch.put(failed(at=5, deletionTimestamp=time(6)))
    watch.sink.remove(("ml", "web"))
    assert (watch.told, watch.sink.pods) == ([], 0)


def test_pods_that_are_not_placed_or_not_matched_tell_nothing() -> None:
    watch = Watch(learns(match={"namespaces": ["other"]}))
    watch.put(failed(at=5), failed("waits", at=5, on=""))
    watch.pass_time(2 * SETTLE)
    assert (watch.told, watch.pairs) == ([], {})


def test_a_pod_on_a_node_that_is_not_known_waits_for_it() -> None:
    watch = Watch()
    watch.put(failed(at=5, on="n3"))
    assert watch.told == []
    watch.mirror.node_sink.put(decode.node(written(node("n3"))))
    watch.put(failed(at=5, on="n3", version=2))
    assert watch.pairs == {of("ml/web", "n3"): 1.0}


def test_a_pod_without_a_type_tells_nothing() -> None:
    watch = Watch()
    watch.put(failed(at=5, labels={"other": "x"}))
    assert watch.told == []


def test_a_match_by_labels_of_a_namespace_waits_until_it_is_known() -> None:
    watch = Watch(learns(match={"namespaceSelector": {"matchLabels": {"team": "red"}}}))
    watch.put(failed(at=5))
    assert watch.told == []
    ml = {"metadata": {"name": "ml", "uid": "u", "labels": {"team": "red"}}}
    watch.mirror.namespace_sink.put(decode.namespace(msgspec.Raw(written(ml))))
    watch.put(failed(at=5, version=2))
    assert watch.told == [("p", FAILURE)]


def test_each_rule_has_its_own_type_and_its_own_time() -> None:
    watch = Watch(
        learns("a", settle="1m"), learns("b", settle="10m", type="pod.metadata.name"), learns("c", type="'x'.charAt(9)")
    )
    watch.put(ran())
    watch.pass_time(60)
    assert watch.told == [("a", SUCCESS)]
    watch.pass_time(540)
    assert watch.told == [("a", SUCCESS), ("b", SUCCESS)]


def test_what_a_list_brings_is_not_published_before_its_end() -> None:
    watch = Watch()
    watch.sink.begin()
    watch.put(failed(at=-100))
    assert (watch.told, watch.pairs) == ([], {})
    watch.sink.end()
    assert (watch.told, watch.pairs) == ([], {of("ml/web"): 1.0})


def test_a_clock_that_is_far_ahead_counts_as_now_and_once() -> None:
    watch = Watch()
    watch.put(failed(at=7200), failed(at=7200, version=2))
    assert watch.told == [("p", FAILURE)]
    (learner,) = watch.learners.values()
    (write,) = learner.writes(START)
    assert [pair.at for pair in write.written.pairs.values()] == [START]


def test_in_a_list_a_clock_that_is_far_ahead_tells_nothing_and_neither_does_its_pod_later() -> None:
    watch = Watch()
    watch.sink.begin()
    watch.put(failed(at=7200))
    watch.sink.end()
    watch.put(failed(at=7200, version=2))
    assert (watch.told, watch.pairs) == ([], {})


def test_an_edit_of_a_weight_keeps_what_is_known() -> None:
    watch = Watch()
    watch.put(ran())
    assert not watch.follow(learns(priorPercent=50))
    watch.pass_time(SETTLE)
    assert watch.told == [("p", SUCCESS)]


def test_a_policy_in_shadow_learns_and_goes_on_with_the_same_pods_once_it_is_enforced() -> None:
    watch = Watch(in_mode(learns(), "Shadow"))
    watch.put(ran(), ran("other"))
    watch.put(failed("other", at=60, version=2))
    assert watch.told == [("p", FAILURE)]
    assert not watch.follow(learns())
    watch.pass_time(SETTLE)
    assert watch.told == [("p", FAILURE), ("p", SUCCESS)]


@pytest.mark.parametrize(
    "edited",
    [
        learns(type="pod.metadata.name"),
        learns(settle="1m"),
        learns(match={"namespaces": ["ml"]}),
        learns(uid="u-another"),
    ],
)
def test_an_edit_of_what_it_learns_looks_at_all_pods_again(edited: CompiledPolicy) -> None:
    watch = Watch()
    watch.put(ran())
    assert watch.follow(edited)
    assert watch.sink.pods == 0
    watch.pass_time(2 * SETTLE)
    assert watch.told == []


def test_many_restarts_of_one_pod_take_a_bounded_memory() -> None:
    watch = Watch()
    for at in range(0, 1000, 10):
        watch.put(failed(at=at, version=at + 1))
    assert len(watch.told) == 100
    known = watch.sink._known["ml", "web"]
    assert [len(each.ids) for each in known.settling] == [16]


def test_pods_that_go_before_their_time_and_types_of_their_own_take_no_memory() -> None:
    watch = Watch(learns(settle="24h"))
    for number in range(10_000):
        one = ran(f"job-{number}", labels={"app": f"type-{number}"})
        watch.put(one)
        watch.sink.remove((one["metadata"]["namespace"], one["metadata"]["name"]))
        if number % 100 == 0:
            watch.pass_time(1)
    assert (watch.sink.pods, len(watch.sink._due)) == (0, 0)
    assert len(watch.sink._due._times) <= 101
    assert len(watch.sink._kinds) <= 4096


def test_the_taint_manager_tells_of_a_node_that_is_not_ready() -> None:
    watch = Watch()
    by: Sequence[Any] = [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "lastTransitionTime": time(3),
        }
    ]
    ended, other = ran("a"), ran("b", on="n2")
    for each in (ended, other):
        each["status"]["conditions"] = by
    unready = node("n1", version=2, conditions=[{"type": "Ready", "status": "Unknown"}])
    watch.mirror.node_sink.put(decode.node(written(unready)))
    watch.put(ended, other)
    assert watch.pairs == {of("ml/web"): 1.0}
