"""A new class of pods that begins with the results that another class has: which these are, and what that costs."""

import pytest

from fairlead.api.params import Params
from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.verdict_cache import BACKLOG
from fairlead.strategies.contract import PASS, Filter, Pass, Reads, Strategy, Use
from fairlead.strategies.reads import LABELS, NodeChange
from support.policy import INSTALLED, MODEL, NOW, SECOND, Clock, Evaluation, node, obj, pod, policy
from support.policy.asking import filtered
from support.policy.rule_work import GPU, evaluations_in, gpu_cluster


def test_a_new_class_begins_with_the_results_of_rules_to_which_its_pods_are_the_same() -> None:
    cluster = gpu_cluster()
    one, other = pod(labels={"gpu": "a"}), pod(labels={"gpu": "b"})
    assert len(cluster.filter(one).passed) == 20
    cluster.scores(one)
    cluster.nodes.put(node("n3", labels={"gpu": "b", "zone": "z2"}), NodeChange(node=frozenset({LABELS})))
    cluster.nodes.put(node("n4", labels={"gpu": "b"}), GPU)
    with evaluations_in(cluster) as asked:
        assert cluster.filter(other).passed == ["n4"]
        cluster.scores(other)
    assert asked == {"gpu": 20, "gpus": 2, "zone": 1}
    assert cluster.reasons(other)["n3"] == "p/zone: zone"
    with evaluations_in(cluster) as before:
        assert "n4" not in cluster.filter(one).passed
    assert before == {"gpu": 2, "zone": 1}, "what another class was given is out of date here, too"


@pytest.mark.parametrize("first", ["a", "b"])
def test_results_that_another_class_was_given_expire_in_both(first: str) -> None:
    young = "now - timestamp(node.metadata.labels['since']) < duration('1m')"
    since = {"since": "2027-01-15T08:00:00Z"}
    cluster = Evaluation(
        [
            policy(
                filters={"gpu": "pod.metadata.labels.gpu != 'x'", "young": young}, scores={"s": f"{young} ? 1.0 : 2.0"}
            )
        ],
        [node("n", labels=since)],
    )
    classes = {gpu: pod(labels={"gpu": gpu}) for gpu in "ab"}
    for one in classes.values():
        assert list(cluster.filter(one).passed) == ["n"]
        assert cluster.scores(one) == [1.0]
    later = NOW + 61 * SECOND
    for one in (classes.pop(first), *classes.values()):
        assert not cluster.filter(one, now=later).passed
        assert cluster.scores(one, now=later) == [2.0]


def test_classes_that_differ_to_a_score_only_have_the_same_verdicts() -> None:
    rules = policy(filters={"gpu": "node.metadata.labels.gpu == 'a'"}, scores={"own": "double(pod.spec.priority)"})
    cluster = Evaluation([rules], [node(f"n{at}", labels={"gpu": "ab"[at % 2]}) for at in range(10)])
    for priority in (1, 2):
        with evaluations_in(cluster) as asked:
            assert len(cluster.filter(pod(priority=priority)).passed) == 5
        assert asked == ({"gpu": 10} if priority == 1 else {})


def test_reasons_that_a_class_finds_later_are_its_own() -> None:
    ready = {"nodeReadiness": {"labels": [{"key": "zone"}, {"key": "warm"}]}}
    cluster = Evaluation([policy(filters={"gpu": "pod.metadata.labels.gpu != 'x'", "ready": ready})])
    for labels in ({"zone": "z1", "warm": "yes"}, {"zone": "z1"}, {"warm": "yes"}):
        cluster.nodes.put(node("n", labels=labels))
        found = [cluster.reasons(pod(labels={"gpu": gpu})) for gpu in "ab"]
        fresh = Evaluation(cluster.evaluator.policies.policies, [node("n", labels=labels)])
        assert found == [fresh.reasons(pod(labels={"gpu": "a"}))] * 2


def test_a_new_class_does_not_begin_with_what_other_policies_or_another_evaluator_found() -> None:
    cluster = gpu_cluster()
    cluster.filter(pod(labels={"gpu": "a"}))
    same_names = policy(filters={"gpu": "true", "zone": "false", "room": "true"})
    other = Evaluator(policy_set([same_names]), cluster.nodes, classes=cluster.evaluator.classes)
    assert not filtered(other, pod(labels={"gpu": "b"}), cluster.names).passed


def test_a_new_class_does_not_begin_with_what_held_for_a_moment() -> None:
    even = "int(now) % 2 == 0 && size(node.metadata.labels) == 0"
    cluster = Evaluation([policy(filters={"gpu": "pod.metadata.labels.gpu != 'x'", "even": even})], [node("n")])
    assert list(cluster.filter(pod(labels={"gpu": "a"})).passed) == ["n"]
    assert not cluster.filter(pod(labels={"gpu": "b"}), now=NOW + SECOND).passed


@pytest.mark.parametrize("behind", [0, 1])
def test_a_class_that_is_far_behind_gives_nothing(behind: int) -> None:
    cluster = gpu_cluster()
    cluster.filter(pod(labels={"gpu": "a"}))
    rules = len(cluster.evaluator.policies.policies[0].filters)
    for _ in range(BACKLOG // rules + behind):
        cluster.nodes.put(node("n3", labels={"gpu": "a"}), GPU)
    with evaluations_in(cluster) as asked:
        assert not cluster.filter(pod(labels={"gpu": "b"})).passed
    assert asked == ({"gpu": 20, "zone": 20, "room": 20} if behind else {"gpu": 20})


def test_of_several_classes_no_more_is_read_than_of_one() -> None:
    rules = {f"r{at}": f"pod.metadata.labels[?'l{at}'].orValue('') != 'x'" for at in range(4)}
    cluster = Evaluation([policy(filters={**rules, "gpu": "node.metadata.labels[?'gpu'].orValue('') == 'a'"})])
    cluster.nodes.put(node("n", labels={"gpu": "a"}))
    for at in range(4):
        cluster.filter(pod(labels={f"l{at}": "own"}))
    classes = [each.verdicts for each in cluster.evaluator.classes]
    for _ in range(BACKLOG // 5):
        cluster.nodes.put(node("n", labels={"gpu": "a"}), GPU)
    cluster.filter(pod(labels={f"l{at}": "own" for at in range(4)}))
    assert [each.position == cluster.nodes.head for each in classes] == [True, False, False, False]


def test_what_is_copied_takes_no_more_than_what_was_computed() -> None:
    cluster = Evaluation([policy(filters={"a": "pod.metadata.labels.gpu != 'x'", "b": "true", "c": "true"})])
    for at in range(2_000):
        cluster.nodes.put(node(f"n{at}"))
    cluster.filter(pod(labels={"gpu": "a"}))
    with pytest.raises(TooSlowError):
        cluster.filter(pod(labels={"gpu": "b"}), clock=Clock(10**6), deadline_ns=1)
    newest, before = cluster.evaluator.classes
    assert [one.size() for one in newest.verdicts.rules[1:]] == [one.size() for one in before.verdicts.rules[1:]]
    assert len(cluster.filter(pod(labels={"gpu": "b"})).passed) == 2_000
    names = newest.verdicts.names()
    cluster.filter(pod(labels={"gpu": "b"}))
    assert newest.verdicts.names() is names


def _by_kind(name: str, label: str) -> CompiledPolicy:
    kind = f"pod.metadata.labels[?'{label}'].orValue('')"
    return policy(name, variables={"kind": kind}, scores={"works": {"kubeRL": {"type": "variables.kind"}}})


@pytest.mark.parametrize("kinds", [["new"], ["old", "new"], ["new", "old"]])
def test_what_another_policy_calls_a_type_by_the_same_text_changes_nothing(kinds: list[str]) -> None:
    before = Evaluation([_by_kind("p0", "old")], [node("n")])
    before.scores(pod(labels={"old": "x"}))
    cluster = Evaluation([_by_kind(f"p{at}", kind) for at, kind in enumerate(kinds)], [node("n")])
    pods = [pod(labels={"new": kind}) for kind in ("good", "bad", "bad")]
    for one in pods:
        cluster.scores(one)
    keys = [cluster.evaluator.class_of(one, cluster.matched(one)) for one in pods]
    assert None not in keys
    assert keys[0] != keys[1] == keys[2]
    rules = [[each.key for each in one.scores.rules] for one in cluster.evaluator.classes]
    at = kinds.index("new")
    assert rules[0][at] != rules[1][at]


def test_what_a_strategy_reads_may_be_told_in_sets() -> None:
    reads = Reads(pod={("metadata", "labels", "gpu")})  # type: ignore[arg-type]
    own = Filter(reads=reads, for_pod=lambda _: _passes, reasons=())
    custom = {"own": Strategy(name="own", filter=Use(_Nothing, lambda _: own))}
    written = obj("p", filters={"own": {"custom": {"name": "own", "params": {}}}})
    compiled = compile_policy(parse_policy(written, MODEL), CompileOptions(INSTALLED, custom=custom))
    cluster = Evaluation([compiled], [node("n")])
    for gpu in "ab":
        assert cluster.filter(pod(labels={"gpu": gpu})).passed == ["n"]
    assert len(cluster.evaluator.classes) == 2


class _Nothing(Params):
    pass


def _passes(*_: object) -> Pass:
    return PASS
