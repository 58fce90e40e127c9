"""Kept systems: shared, followed in pieces, and forgotten when no rule reads them."""

import gc

import pytest

from fairlead.api.selectors import LabelSelector
from fairlead.cooperative import finish
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes import kept_system as kept
from fairlead.policy.nodes.compared_views import follow, kept_system
from fairlead.policy.nodes.node_table import Nodes, RequestNodes
from fairlead.strategies.contract import SystemRead
from fairlead.strategies.node_system import PARTS, SystemSums
from fairlead.strategies.reads import NodeChange
from support.policy import NOW, Clock, Endless, node, pod, policy
from support.policy.asking import NEVER, scored
from support.policy.machines import cores, machine

CPU = SystemRead(("cpu",))
BALANCE = {"pigeon": {"objective": "Balance", "resources": ["cpu"]}}


def cluster(count: int = 3) -> Nodes:
    nodes = Nodes()
    for at in range(count):
        nodes.put(cores(f"n{at}", float(at), 10.0))
    return nodes


def evaluator(nodes: Nodes, **params: object) -> Evaluator:
    rule = {"pigeon": {**BALANCE["pigeon"], **params}}
    return Evaluator(policy_set([policy(scores={"s": rule})]), nodes)


def total(nodes: Nodes) -> float:
    """The sum of the shares of cpu, in tenths."""
    system = kept_system(nodes, CPU)
    finish(follow(nodes, system))
    return round(system.sums.prime_total * 10 / PARTS, 6)


def test_equal_systems_are_one() -> None:
    nodes = cluster()
    both = [evaluator(nodes), evaluator(nodes, system={})]
    (one,), (other,) = (each._systems for each in both)
    assert one is not other  # an empty selector is written differently, and the same
    again = evaluator(nodes)
    assert again._systems[0] is one
    assert evaluator(RequestNodes(nodes))._systems[0] is one
    assert len(nodes.systems) == 2


def test_a_system_that_no_rule_reads_is_forgotten() -> None:
    nodes = cluster()
    asked = evaluator(nodes)
    scored(asked, pod(), ["n0"])
    del asked
    gc.collect()
    assert len(nodes.systems) == 0


@pytest.mark.parametrize("mode", ["Enforce", "Disabled"])
def test_only_enforced_policies_keep_systems(mode: str) -> None:
    nodes = cluster()
    asked = Evaluator(policy_set([policy(scores={"s": BALANCE}, mode=mode)]), nodes)
    assert len(asked._systems) == len(nodes.systems) == (1 if mode == "Enforce" else 0)


def test_other_policies_keep_no_system() -> None:
    nodes = cluster()
    asked = Evaluator(policy_set([policy(scores={"s": "1.0"})]), nodes)
    scored(asked, pod(), ["n0"])
    assert len(nodes.systems) == 0


def test_only_what_matters_is_noted() -> None:
    nodes = cluster()
    system = kept_system(nodes, SystemRead(("cpu",), LabelSelector.model_validate({"matchLabels": {"pool": "a"}})))
    finish(follow(nodes, system))
    head = nodes.head
    nodes.put(cores("n0", 0.0, 10.0), NodeChange(node=frozenset({("metadata", "labels", "other")})))
    assert nodes.head == head
    change = NodeChange(node=frozenset({("metadata", "labels", "pool")}))
    nodes.put(machine("n0", {"cpu": (1.0, 10.0)}, labels={"pool": "a"}), change)
    assert nodes.head == head + 1
    finish(follow(nodes, system))
    assert system.sums.number == 1


def test_a_change_of_something_else_changes_nothing() -> None:
    nodes = cluster()
    asked = evaluator(nodes)
    assert total(nodes) == 3.0
    nodes.put(cores("n0", 9.0, 10.0), NodeChange(requested=frozenset({"memory"})))
    assert total(nodes) == 3.0  # as the change says
    nodes.put(cores("n0", 9.0, 10.0), NodeChange(requested=frozenset({"cpu"})))
    assert total(nodes) == 12.0
    del asked


def test_a_slot_that_another_node_gets() -> None:
    nodes = cluster()
    asked = evaluator(nodes)
    assert total(nodes) == 3.0
    nodes.remove("n2")
    nodes.put(cores("other", 5.0, 10.0))
    assert total(nodes) == 6.0
    del asked


def test_a_journal_that_does_not_reach_back_means_from_nothing() -> None:
    nodes = cluster()
    nodes.journal.entries_max = 2
    asked = evaluator(nodes)
    assert total(nodes) == 3.0
    for used in (4.0, 5.0, 6.0, 7.0):
        nodes.put(cores("n0", used, 10.0), NodeChange(requested=frozenset({"cpu"})))
    nodes.remove("n1")
    assert total(nodes) == 9.0
    del asked


def test_a_call_that_comes_too_early_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_SLICE", 1)
    nodes = cluster(5)
    asked = evaluator(nodes)
    for _ in range(4):
        with pytest.raises(TooSlowError) as error:
            scored(asked, pod(), ["n0", "n4"], clock=Clock(step=5), deadline_ns=4)
        assert error.value.policy == "p"
    names = ["n0", "n4"]
    assert scored(asked, pod(request={"cpu": 1.0}), names) == [100.0, 10.0]


def test_systems_are_followed_in_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_SLICE", 1)
    nodes = cluster(5)
    asked = evaluator(nodes)
    assert not asked.precompute(now=NOW, clock=Clock(step=5), deadline_ns=4)
    assert asked.precompute(now=NOW, clock=Endless(), deadline_ns=NEVER)
    nodes.put(node("irrelevant", cpu=0.0))
    assert asked.precompute(now=NOW, clock=Endless(), deadline_ns=NEVER)
    assert asked._systems[0].position == nodes.head
    sums = asked._systems[0].sums
    assert isinstance(sums, SystemSums)
    assert sums.number == 5
