"""Device shares from the policy to the answer: compiled, judged, cached, granted, and in conflict."""

from typing import Any

import pytest

from fairlead.api.parse import parse_policy
from fairlead.cel.values.structs import from_json
from fairlead.grants.commit import Refused
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_conflicts import LayoutConflict, layout_conflicts
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.preemption import dropped
from fairlead.policy.evaluate.requested_devices import RequestedDevices, choose_devices, requested_devices
from fairlead.policy.explain.explainer import explain
from fairlead.policy.lint.policy_checks import warnings
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.device_facts import NodeDevices
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import GrantedDevice, Nominated, PodGrant
from fairlead.strategies.devices.layout import size_of
from fairlead.strategies.devices.record import gpushare_annotations
from fairlead.strategies.reads import NodeChange
from support.policy import MODEL, NOW, Evaluation, faults, obj, pod, policy

MEM, CORE, COUNT = "aliyun.com/gpu-mem", "example.org/gpu-core", "aliyun.com/gpu-count"


def entry(name: str = "gpu", resource: str = MEM, count: str = COUNT, **more: Any) -> dict[str, Any]:
    return {"name": name, "shares": [{"resource": resource}], "layout": {"count": count}} | more


def shares(*entries: dict[str, Any], name: str = "p", **spec: Any) -> CompiledPolicy:
    return policy(name, binding={"deviceShare": [*entries]}, **spec)


def cards(name: str = "n1", *granted: PodGrant, size: int = 8, nominated: tuple[Nominated, ...] = ()) -> NodeView:
    capacity = {MEM: str(size * 2), COUNT: "2"}
    made = from_json("Node", {"metadata": {"name": name}, "status": {"capacity": capacity}})
    amounts = {resource: float(amount) for resource, amount in capacity.items()}
    return NodeView(made, allocatable=amounts, devices=NodeDevices(granted, nominated))


def asks(amount: float, name: str = "x", **more: Any) -> PodView:
    container = {"name": "c", "resources": {"requests": {MEM: str(amount)}, "limits": {MEM: str(amount)}}}
    return pod(name, request={MEM: amount}, containers=[container], **more)


def holds(uid: str, card: str, amount: int) -> PodGrant:
    return PodGrant(uid, (GrantedDevice(card, {MEM: amount}),))


def matched(*policies: CompiledPolicy) -> list[Matched]:
    return [Matched(one) for one in policies]


def requested(asking: PodView, *policies: CompiledPolicy) -> RequestedDevices:
    found = requested_devices(asking, matched(*policies))
    assert isinstance(found, RequestedDevices)
    return found


def not_granted(name: str) -> str:
    why = "because a has an entry of the same name, or for some of the same resources"
    return f"policy b, {name}: {CORE} cannot be granted, {why}"


def test_a_device_share_brings_a_filter() -> None:
    made = shares(entry())
    assert [rule.name for rule in made.filters] == ["binding/gpu"]
    answer = Evaluation([made], [cards("full", holds("a", "0", 6), holds("b", "1", 6)), cards("free")]).filter(asks(4))
    assert answer.passed == ["free"]
    assert [(one.rule, one.reason, one.resolvable) for one in answer.rejected.values()] == [
        ("binding/gpu", "no single device has room", True)
    ]


def test_a_filter_that_names_it_takes_its_place() -> None:
    made = shares(entry(), filters={"room": {"deviceShare": {"name": "gpu"}, "reason": "no card", "resolvable": True}})
    assert [rule.name for rule in made.filters] == ["room"]
    nodes = [cards("full", holds("a", "0", 6), holds("b", "1", 6)), cards("small", size=2)]
    answer = Evaluation([made], nodes).filter(asks(4))
    assert {name: (one.reason, one.resolvable) for name, one in answer.rejected.items()} == {
        "full": ("no card", True),
        "small": ("no card", False),  # what no eviction changes stays so
    }


def test_scores_name_a_share() -> None:
    made = shares(entry(), scores={"fill": {"deviceShare": {"name": "gpu", "objective": "Pack"}}})
    found = Evaluation([made], [cards("empty"), cards("half", holds("a", "1", 4))]).scores(asks(4))
    assert found == [50.0, 100.0]


@pytest.mark.parametrize(
    ("spec", "field", "want"),
    [
        (
            {"filters": {"room": {"deviceShare": {"name": "gpus"}}}, "binding": {"deviceShare": [entry()]}},
            "spec.filters[0].deviceShare.name",
            "there is no entry gpus in the policy's binding.deviceShare; declared are gpu",
        ),
        (
            {"scores": {"fill": {"deviceShare": {"name": "gpu", "objective": "Pack"}}}},
            "spec.scores[0].deviceShare.name",
            "there is no entry gpu in the policy's binding.deviceShare; it has none",
        ),
        (
            {"binding": {"deviceShare": [entry(cards="'2'")]}},
            "spec.binding.deviceShare[0].cards",
            "expected an int, got a string; remove the quotes",
        ),
        (
            {"binding": {"deviceShare": [entry(cards="node.metadata.name.size()")]}},
            "spec.binding.deviceShare[0].cards",
            "",
        ),
    ],
)
def test_what_does_not_compile(spec: dict[str, Any], field: str, want: str) -> None:
    found = faults(**spec)
    assert want in found[field]


def test_a_share_that_does_not_compile_is_no_fault_of_its_filter() -> None:
    spec: dict[str, Any] = {"filters": {"room": {"deviceShare": {"name": "gpu"}}}}
    assert [*faults(binding={"deviceShare": [entry(cards="'2'")]}, **spec)] == ["spec.binding.deviceShare[0].cards"]


def test_cards_are_read_from_the_pod() -> None:
    text = "int(pod.metadata.annotations[?'cards'].orValue('1')) * variables.each"
    made = shares(entry(cards=text), variables={"each": "1"})
    two = choose_devices(requested(asks(8, annotations={"cards": "2"}), made), cards())
    assert two == {"gpu": (GrantedDevice("0", {MEM: 4}), GrantedDevice("1", {MEM: 4}))}
    broken = requested_devices(asks(8, annotations={"cards": "two"}), matched(made))
    assert broken == Refused("policy p, gpu: cards of gpu cannot be decided")


def test_lint_knows_that_cards_uses_a_variable_and_who_reads_a_grant() -> None:
    meant = entry("meant", "example.com/third", record="Fairlead")
    spec: dict[str, Any] = {"binding": {"deviceShare": [entry(cards="variables.each"), entry("own", CORE), meant]}}
    written = obj(variables={"each": "1"}, **spec)
    found = warnings(policy(variables={"each": "1"}, **spec), parse_policy(written, MODEL))
    assert [(one.reason.value, one.path) for one in found] == [
        ("UnusedGrant", ("spec", "binding", "deviceShare", 0)),
        ("UnusedGrant", ("spec", "binding", "deviceShare", 1)),
    ]
    assert "metadata.annotations['fairlead.dev/devices.gpu']" in found[0].hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "with 0 it is placed on no node"),
        ("17", "with 17 it is placed on no node"),
        ("-1 + 1", "with 0 it is placed on no node"),
        ("pod.spec.priority > 5 ? 20 : (pod.spec.priority > 1 ? 4 : 0)", "with 0 and 20 it is placed on no node"),
        ("1", ""),
        ("16", ""),
        ("int(pod.metadata.annotations['n'])", ""),
    ],
)
def test_lint_knows_numbers_of_devices_that_no_pod_can_have(text: str, said: str) -> None:
    spec: dict[str, Any] = {"binding": {"deviceShare": [entry(cards=text)]}}
    found = warnings(policy(**spec), parse_policy(obj(**spec), MODEL))
    about = [one for one in found if one.reason.value == "NeverPasses"]
    assert [(one.path[-1], said in one.message) for one in about] == ([("cards", True)] if said else [])


def test_verdicts_follow_grants() -> None:
    """The verdicts of a class are cached by node; a change of the node's ledger is a change of the node."""
    cluster = Evaluation([shares(entry())], [cards()])
    assert cluster.filter(asks(4)).passed == ["n1"]
    full = cards("n1", holds("a", "0", 6), holds("b", "1", 6))
    cluster.nodes.put(full, NodeChange(requested=frozenset({"cpu"})))
    assert cluster.filter(asks(4)).passed == ["n1"], "not told of devices"
    cluster.nodes.put(full, NodeChange(devices=True))
    assert cluster.filter(asks(4)).passed == []
    cluster.nodes.put(cards(), NodeChange(devices=True))
    assert cluster.filter(asks(4, "y")).passed == ["n1"]


def test_pods_that_ask_in_other_ways_are_not_of_one_class() -> None:
    cluster = Evaluation([shares(entry(record="Gpushare"))], [cards()])
    container = {"name": "c", "resources": {"requests": {MEM: "2"}}}
    two = pod("two", request={MEM: 4.0}, containers=[container, container])
    assert cluster.filter(asks(4)).passed == ["n1"]
    assert cluster.filter(two).passed == []
    assert (
        cluster.filter(pod("init", request={MEM: 2.0}, containers=[container], initContainers=[container])).passed == []
    )


@pytest.mark.parametrize(
    ("victims", "want"), [(["u-a"], None), (["u-c"], "no single device has room"), ([], "no single device has room")]
)
def test_a_candidate_of_preemption_is_kept_if_its_victims_leave_a_card(victims: list[str], want: str | None) -> None:
    made, nodes = shares(entry()), Nodes()
    nodes.put(cards("n1", holds("u-a", "0", 6), holds("u-b", "1", 6), holds("u-c", "1", 1)))
    found = dropped(
        asks(4), matched(made), nodes, "n1", victims, requests=lambda _: {}, now=NOW, tally=RuleErrorTally()
    )
    assert (found and found.why) == want


def test_the_first_policy_grants_a_resource() -> None:
    first, second = shares(entry(), name="a"), shares(entry("cards"), entry("fpga", CORE), name="b")
    both = pod("x", request={MEM: 4.0, CORE: 1.0})
    found = requested(both, first, second)
    assert [(one.policy, one.share.entry.name) for one in found.shares] == [("a", "gpu"), ("b", "fpga")]
    assert (found.policies, found.ask) == ("a,b", tuple(one.need for one in found.shares))
    chosen = choose_devices(requested(asks(4), first, second), cards())
    assert chosen == {"gpu": (GrantedDevice("0", {MEM: 4}),)}


@pytest.mark.parametrize(
    ("later", "request_", "granted_by"),
    [
        (entry("gpu", CORE), {CORE: 1.0}, "b"),
        (entry("gpu", CORE), {MEM: 1.0}, "a"),
        (entry("gpu", CORE), {MEM: 1.0, CORE: 1.0}, not_granted("gpu")),
        (entry("two", shares=[{"resource": MEM}, {"resource": CORE}]), {CORE: 1.0}, "b"),
        (entry("two", shares=[{"resource": MEM}, {"resource": CORE}]), {MEM: 1.0}, "a"),
        (entry("two", shares=[{"resource": MEM}, {"resource": CORE}]), {MEM: 1.0, CORE: 1.0}, not_granted("two")),
        (entry("two", shares=[{"resource": MEM}, {"resource": CORE}]), {MEM: 0.0, CORE: 1.0}, "b"),
    ],
)
def test_resources_that_a_pod_does_not_request_keep_out_no_other(
    later: dict[str, Any], request_: dict[str, float], granted_by: str
) -> None:
    found = requested_devices(pod("x", request=request_), matched(shares(entry(), name="a"), shares(later, name="b")))
    assert found is not None
    assert (found.policies if isinstance(found, RequestedDevices) else found.why) == granted_by


def test_what_is_granted_is_told_to_the_plugin() -> None:
    made = shares(entry(record="Gpushare"))
    share, node = made.device_shares[0].share, cards("n1", holds("a", "1", 3))
    chosen = choose_devices(requested(asks(4), made), node)
    assert not isinstance(chosen, Refused)
    (device,) = chosen["gpu"]
    assert gpushare_annotations(device, share.entry, size_of(device.id, share.entry, node), 9) == {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "8",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "9",
    }


def test_a_refusal_names_the_policy_and_the_share() -> None:
    chosen = choose_devices(requested(asks(9), shares(entry())), cards())
    assert chosen == Refused("policy p, gpu: request is larger than any device")


def test_a_pod_that_asks_for_nothing_gets_nothing() -> None:
    assert requested_devices(pod(), matched(shares(entry()))) is None


def test_explain_shows_each_card() -> None:
    made, nodes = shares(entry()), Nodes()
    nodes.put(cards("n1", holds("a", "0", 6), holds("b", "1", 7)))
    (rule,) = explain(asks(4), matched(made), nodes, "n1", NOW).filters
    assert rule.noted is not None
    shown = dict(rule.noted.items)
    assert (shown["device 0"]["free"], shown["device 1"]["free"], rule.noted.values["largestFree"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("policies", "want"),
    [
        ([shares(entry(), name="a"), shares(entry("cards"), name="b")], []),
        ([shares(entry(), name="a"), shares(entry(count="c.io/n"), name="b")], [LayoutConflict(MEM, "a", "b")]),
        # Ledgers are shared by all schedulers.
        (
            [shares(entry(), name="a"), shares(entry(count="c.io/n"), name="b", schedulerName="other")],
            [LayoutConflict(MEM, "a", "b")],
        ),
        (
            [shares(entry(), name="a"), shares(entry(count="c.io/n"), name="b", priority=1)],
            [LayoutConflict(MEM, "b", "a")],
        ),
        ([shares(entry(), name="a"), shares(entry(count="c.io/n"), name="b", mode="Disabled")], []),
        ([shares(entry(), name="a"), shares(entry("gpu", CORE, "c.io/n"), name="b")], []),
    ],
)
def test_policies_that_read_one_device_in_two_ways(policies: list[CompiledPolicy], want: list[LayoutConflict]) -> None:
    assert layout_conflicts(policies) == want
