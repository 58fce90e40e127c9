"""Groups of a policy: what compiles, what does not, and what the rest of the product is told of them."""

from typing import Any

import pytest

from fairlead.api.gangs import Gang
from fairlead.api.parse import parse_params
from fairlead.policy.compile.model import RuleReport
from fairlead.policy.compile.policy_conflicts import GangConflict, gang_conflicts
from fairlead.policy.evaluate.matching import policy_set
from policies.good import gang
from support.policy import faults, policy
from support.strategies.bounds import Edge, edges

ON_ENGINE = "'%s'.format([pod.metadata.labels['job']])"


def compiled(*entries: dict[str, Any], **spec: Any) -> Any:
    return policy(binding={"gang": [*entries]}, **spec)


@pytest.mark.parametrize("edge", [*edges(Gang, gang(holdFor="30s"))], ids=lambda edge: f"{edge.path}: {edge.what}")
def test_the_bounds_of_each_field(edge: Edge) -> None:
    said = ""
    for params in (edge.params, *edge.rivals):
        try:
            parse_params(params, Gang, ())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
            said += f"{error}\n"
        else:
            assert edge.fits, f"{params} was accepted"
            return
    assert not edge.fits, said
    assert str(edge.path[-1]) in said, "it names the field"


def test_what_is_not_written_has_its_default() -> None:
    assert [rule.hold_s for rule in compiled(gang(), gang(name="b", holdFor="1m30s")).gangs] == [30, 90]


@pytest.mark.parametrize(
    "text",
    [
        "pod.metadata.name",
        "pod.metadata.namespace + pod.metadata.uid",
        "pod.metadata.labels.map(key, key).sort().join(',')",
        "has(pod.metadata.labels.job) ? pod.metadata.labels.job : ''",
        "pod.metadata.ownerReferences.filter(owner, owner.controller).map(owner, owner.uid).join('')",
        "pod.metadata.ownerReferences[0].name",
        "pod.metadata.annotations[?'example.org/job'].orValue('')",
        "pod.metadata.annotations['a'] + pod.metadata.annotations.b",
        "'a' in pod.metadata.annotations ? 'x' : ''",
        "variables.of",
        "'all-of-the-namespace'",
        "'" + "x" * 253 + "'",
    ],
)
def test_a_group_may_read_what_is_kept_of_placed_pods(text: str) -> None:
    assert faults(binding={"gang": [gang(group=text)]}, variables={"of": "pod.metadata.labels[?'a'].orValue('')"}) == {}


READS = "which is not kept of pods on nodes"


@pytest.mark.parametrize(
    ("entry", "field", "want"),
    [
        # What a restart would not know.
        ({"group": "pod.spec.schedulerName"}, "group", f"reads pod.spec.schedulerName, {READS}"),
        ({"group": "pod.spec.nodeName"}, "group", f"reads pod.spec.nodeName, {READS}"),
        ({"group": "pod.metadata.generateName"}, "group", f"reads pod.metadata.generateName, {READS}"),
        (
            {"group": "string(pod.metadata.creationTimestamp)"},
            "group",
            f"reads pod.metadata.creationTimestamp, {READS}",
        ),
        ({"group": "pod.status.phase"}, "group", f"reads pod.status.phase, {READS}"),
        ({"group": "pod.metadata == pod.metadata ? 'a' : ''"}, "group", f"reads pod.metadata, {READS}"),
        ({"group": "[pod].size() > 0 ? 'a' : ''"}, "group", f"reads pod, {READS}"),
        ({"group": "namespaceObject.metadata.name"}, "group", f"reads namespaceObject.metadata.name, {READS}"),
        (
            {"group": "pod.metadata.annotations.map(key, key).join('')"},
            "group",
            f"reads pod.metadata.annotations, {READS}",
        ),
        ({"group": "pod.metadata.annotations[variables.key]"}, "group", f"reads pod.metadata.annotations, {READS}"),
        ({"group": "variables.spec"}, "group", f"reads pod.spec.hostname, {READS}"),
        (
            {"group": "pod.spec.hostname + pod.spec.subdomain"},
            "group",
            "reads pod.spec.hostname and pod.spec.subdomain, which are not kept of pods on nodes",
        ),
        (
            {"group": "pod.spec.hostname"},
            "group",
            "it may read name, namespace, uid, labels and ownerReferences, and annot",
        ),
        ({"group": "now.getHours() > 1 ? 'a' : ''"}, "group", "`now` is not available in the group"),
        ({"group": "request['cpu'] > 1.0 ? 'a' : ''"}, "group", "`request` is not available in the group"),
        ({"size": "int(node.metadata.labels['n'])"}, "size", "`node` is not available in the size of a group"),
        ({"size": "now.getHours()"}, "size", "`now` is not available in the size of a group"),
        # What is no group.
        ({"group": " \n "}, "group", "the expression is empty; write one that evaluates to a string"),
        ({"group": "''"}, "group", "is blank for every pod, so none is in a group"),
        ({"group": "'a'.substring(1)"}, "group", "is blank for every pod, so none is in a group"),
        ({"group": "'" + "x" * 254 + "'"}, "group", "has 254 characters, 253 are allowed"),
        ({"group": "['a'][1]"}, "group", "always raises an error"),
        ({"group": "4"}, "group", "expected a string, got an int"),
        # What is no size.
        ({"size": "0"}, "size", "is 0, but a group has 1 to 500 members; give a number from 1 to 500"),
        ({"size": "501"}, "size", "is 501, but a group has 1 to 500 members"),
        ({"size": "-9223372036854775807"}, "size", "is -9223372036854775807, but a group has 1 to 500 members"),
        ({"size": "[1, 2].map(x, x * 300)[1]"}, "size", "is 600, but a group has 1 to 500 members"),
        ({"size": "variables.many"}, "size", "is 1000, but a group has 1 to 500 members"),
        ({"size": "int('four')"}, "size", "always raises an error"),
        ({"size": "1 / 0"}, "size", "always raises an error: divide by zero; give a number from 1 to 500"),
        ({"size": "9223372036854775807 + 1"}, "size", "always raises an error"),
        ({"size": "4.0"}, "size", "expected an int, got a double"),
        ({"size": "'4'"}, "size", "expected an int, got a string"),
        ({"size": "\t"}, "size", "the expression is empty; write one that evaluates to an int"),
    ],
)
def test_what_does_not_compile(entry: dict[str, Any], field: str, want: str) -> None:
    variables = {"spec": "pod.spec.hostname", "key": "pod.metadata.labels['key']", "many": "1000"}
    found = faults(binding={"gang": [gang(name="good"), gang(**entry)]}, variables=variables)
    assert [*found] == [f"spec.binding.gang[1].{field}"]
    assert want in found[f"spec.binding.gang[1].{field}"]


@pytest.mark.parametrize("size", ["1", "500", "250 + 250"])
def test_the_bounds_of_a_size_compile(size: str) -> None:
    assert faults(binding={"gang": [gang(size=size)]}) == {}


def test_all_faults_are_told_at_once() -> None:
    assert [*faults(binding={"gang": [gang(group="''", size="0"), gang(name="b", size="'x'")]})] == [
        "spec.binding.gang[0].group",
        "spec.binding.gang[0].size",
        "spec.binding.gang[1].size",
    ]


def test_annotations_that_are_read_of_placed_pods_are_kept() -> None:
    kept = "int(pod.metadata.annotations[?'size'].orValue('1'))"
    both = f"{kept} + pod.spec.containers.size()"
    named = {
        (group, size): sorted(compiled(gang(group=f"pod.metadata.{group}", size=size)).pod_annotations)
        for group in ("labels['a']", "annotations['job']")
        for size in ("4", kept, both)
    }
    assert named == {
        ("labels['a']", "4"): [],
        ("labels['a']", kept): ["size"],
        ("labels['a']", both): [],  # of placed pods it cannot be told, so nothing is kept for it
        ("annotations['job']", "4"): ["job"],
        ("annotations['job']", kept): ["job", "size"],
        ("annotations['job']", both): ["job"],
    }


def test_it_is_reported_as_a_filter_with_all_that_it_reads() -> None:
    made = compiled(gang(size="int(namespaceObject.metadata.labels['n'])"), filters={"f": "true"}, scores={"s": "1.0"})
    uses = ("namespaceObject.metadata.labels.n", "pod.metadata.labels.job-name")
    assert made.reports[1] == RuleReport("binding/whole-job", "Filter", "ByteCode", uses)
    assert [one.name for one in made.reports] == ["f", "binding/whole-job", "s"]
    assert [rule.rule for rule in made.gangs] == ["binding/whole-job"]
    assert made.filters[-1].name == "f", "it is no filter of nodes"


def test_it_runs_on_the_engine_if_one_of_its_expressions_does() -> None:
    (by_group,) = compiled(gang(group=ON_ENGINE)).reports
    (by_size,) = compiled(gang(size=f"size({ON_ENGINE}) + 1")).reports
    assert (by_group.evaluation, by_size.evaluation) == ("Engine", "Engine")


def test_its_expressions_are_among_those_of_the_policy() -> None:
    made = compiled(gang(size="variables.n"), variables={"n": "3"})
    (rule,) = made.gangs
    assert {id(one) for one in made.expressions} == {
        id(one) for one in (rule.group, rule.size, *rule.size.variables.values())
    }


TIER_A, TIER_B = ({"podSelector": {"matchLabels": {"tier": tier}}} for tier in ("a", "b"))
IN_AB = {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}}
OF_TEAM = {"namespaceSelector": {"matchLabels": {"tier": "b"}}}


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ({}, {}, True),
        ({"match": TIER_A}, {"match": TIER_A}, True),
        ({"match": TIER_A}, {"match": IN_AB}, True),
        ({"match": TIER_A}, {"match": OF_TEAM}, True),
        ({"match": {"namespaces": ["a", "b"]}}, {"match": {"namespaces": ["b"]}}, True),
        # Conditions are taken as true of placed pods.
        ({"match": {"conditions": {"c": "pod.spec.priority > 1"}}}, {"match": {"conditions": {"c": "false"}}}, True),
        ({"match": TIER_A}, {"match": TIER_B}, False),
        ({"match": IN_AB}, {"match": {"podSelector": {"matchLabels": {"tier": "c"}}}}, False),
        ({"match": {"namespaces": ["a"]}}, {"match": {"namespaces": ["b"]}}, False),
        ({}, {"schedulerName": "other"}, False),
        ({}, {"mode": "Disabled"}, False),
        ({"mode": "Disabled"}, {}, False),
    ],
)
def test_policies_that_may_give_one_pod_a_group(first: dict[str, Any], second: dict[str, Any], conflict: bool) -> None:
    one, other = (policy(name, binding={"gang": [gang()]}, **spec) for name, spec in (("a", first), ("b", second)))
    assert gang_conflicts([other, one]) == [GangConflict("a", "b")] * conflict
    assert [*policy_set([other, one]).gang_conflicts] == [GangConflict("a", "b")] * conflict


def test_the_first_of_several_wins_and_others_do_not_conflict() -> None:
    spec: dict[str, Any] = {"binding": {"gang": [gang()]}}
    late, top = policy("a", **spec), policy("z", priority=1, **spec)
    plain = policy("m", filters={"f": "true"})
    assert gang_conflicts([late, plain, top, policy("b", **spec)]) == [GangConflict("z", "a"), GangConflict("z", "b")]
