"""Warnings about filters that compile: what they always decide, and what they misread."""

import re

import pytest

from fairlead.policy.lint.codes import LintCode
from support.policy.compile_warnings import LABELS, reasons_of, warnings_of_filter

FILTERS: dict[str, tuple[str, list[str]]] = {
    "it is false": ("false", ["NeverPasses"]),
    "it is true": ("true", ["AlwaysPasses"]),
    "it comes to false": ("1 + 1 == 3", ["NeverPasses"]),
    "it comes to true": ("['a', 'b'].exists(x, x == 'a')", ["AlwaysPasses"]),
    "two values at once": (f"{LABELS}['a'] == 'x' && {LABELS}['a'] == 'y'", ["NeverPasses"]),
    "two values at once, with something between": (
        "node.spec.podCIDR == 'x' && node.spec.unschedulable && 'y' == node.spec.podCIDR",
        ["NeverPasses"],
    ),
    "not one value or not another": ("node.spec.podCIDR != 'x' || node.spec.podCIDR != 'y'", ["AlwaysPasses"]),
    "none of a list and that": ("!(node.spec.podCIDR in ['a']) && node.spec.podCIDR == 'a'", ["NeverPasses"]),
    "neither of two lists": ("node.spec.podCIDR in ['a'] && node.spec.podCIDR in ['b', 'c']", ["NeverPasses"]),
    "one of a list and not that": ("node.spec.podCIDR in ['a'] && node.spec.podCIDR != 'a'", ["NeverPasses"]),
    "one of an empty list": ("node.spec.podCIDR in []", ["NeverPasses"]),
    "more and less": ("allocatable['cpu'] > 4.0 && allocatable['cpu'] < 2.0", ["NeverPasses"]),
    "more and less, the bounds touching": ("allocatable['cpu'] > 4.0 && allocatable['cpu'] <= 4.0", ["NeverPasses"]),
    "a value outside of bounds": ("allocatable['cpu'] == 1.0 && 2.0 <= allocatable['cpu']", ["NeverPasses"]),
    "less or more, all of it": ("allocatable['cpu'] < 4.0 || allocatable['cpu'] >= 4.0", ["AlwaysPasses"]),
    "something and its opposite": ("node.spec.unschedulable && !node.spec.unschedulable", ["NeverPasses"]),
    "something or its opposite": ("has(node.spec.podCIDR) || !has(node.spec.podCIDR)", ["AlwaysPasses"]),
    "absorbed by false": ("node.spec.unschedulable && false", ["NeverPasses"]),
    "absorbed by true": ("node.spec.unschedulable || 1 == 1", ["AlwaysPasses"]),
    "either of two that cannot be": (
        "(node.spec.podCIDR == 'a' && node.spec.podCIDR == 'b') || false && node.spec.unschedulable",
        ["NeverPasses"],
    ),
    "a choice that cannot be": ("node.spec.unschedulable ? false : 1 > 2", ["NeverPasses"]),
    "labels that cannot be": (f"!('a' in {LABELS}) && {LABELS}[?'a'].orValue('') == 'x'", ["NeverPasses"]),
    "not the node": ("pod.spec.priority > 100", []),
    "not the node but the time": ("now.getHours() > 20", []),
    "the namespace only": ("'a' in namespaceObject.metadata.labels", []),
    "the pod's name": ("node.spec.podCIDR != pod.metadata.name", ["PodIdentity"]),
    "the pod's UID": ("node.spec.podCIDR != pod.metadata.uid", ["PodIdentity"]),
    "when the pod was made": ("node.metadata.creationTimestamp < pod.metadata.creationTimestamp", ["PodIdentity"]),
    "the name of a pod in a label": (
        "node.spec.podCIDR == pod.metadata.labels['statefulset.kubernetes.io/pod-name']",
        ["PodIdentity"],
    ),
    "the index of a replica": ("node.spec.podCIDR == pod.metadata.labels['apps.kubernetes.io/pod-index']", []),
    "the index of a job's pod": (
        "int(pod.metadata.labels[?'batch.kubernetes.io/job-completion-index'].orValue('0')) < node.spec.taints.size()",
        [],
    ),
    "free": ("free['cpu'] > 1.0", ["EventuallyConsistent"]),
    "requested": ("requested['cpu'] < 1.0", ["EventuallyConsistent"]),
    "pods": ("pods.exists(p, p.spec.priority > 5)", ["EventuallyConsistent"]),
    # Limits by counting pods.
    "few pods": ("pods.size() < 80", ["CountsPods"]),
    "few pods, by what is requested": ("requested['pods'] < 80.0", ["CountsPods"]),
    "few pods of a kind": ("pods.filter(p, p.spec.priority > 5).size() + 1 <= 3", ["CountsPods"]),
    "few pods, turned round": ("!(3.0 <= double(pods.filter(p, p.spec.priority > 5).size()))", ["CountsPods"]),
    "no pod of a kind": ("!pods.exists(p, p.spec.priority > 5)", ["CountsPods"]),
    "pods of one kind alone": ("node.spec.unschedulable || pods.all(p, p.spec.priority > 5)", ["CountsPods"]),
    "no pods": ("pods.size() == 0", ["CountsPods"]),
    "a pod of a kind": ("pods.filter(p, p.spec.priority > 5).size() > 0", ["EventuallyConsistent"]),
    "not none": ("!(pods.size() < 1)", ["EventuallyConsistent"]),
    "labels of nodes": (f"{LABELS}['a'] == 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes in a way that affinity has not": (f"{LABELS}['a'].startsWith('x')", ["InvisibleToAutoscalers"]),
    "the name of nodes": ("node.metadata.name != 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes against those of pods": (
        f"{LABELS}['a'] == pod.metadata.labels['a']",
        ["InvisibleToAutoscalers"],
    ),
    "a text that is formatted": ("'%s'.format([node.spec.podCIDR]) == pod.spec.hostname", ["RunsOnEngine"]),
    "the time in a time zone": ("now.getHours('Europe/Berlin') >= 22", []),
    "a pattern that is not known": ("node.spec.podCIDR.matches(pod.spec.hostname)", []),
    # Texts that are compared as if they were numbers.
    "memory as a text": ("node.status.allocatable[?'memory'].orValue('0') > '16Gi'", ["ComparedAsText"]),
    "capacity as a text": ("'4' <= node.status.capacity[?'cpu'].orValue('1')", ["ComparedAsText"]),
    "a limit of containers as a text": (
        "!node.spec.unschedulable || pod.spec.containers.all(c, c.resources.limits[?'cpu'].orValue('0') < '500m')",
        ["ComparedAsText"],
    ),
    "two quantities as texts": (
        "node.status.allocatable[?'memory'].value() > pod.spec.containers[0].resources.requests[?'memory'].value()",
        ["ComparedAsText"],
    ),
    "a number in an annotation as a text": (
        "node.metadata.annotations[?'gen'].orValue('0') >= '10'",
        ["ComparedAsText"],
    ),
    "a version of the node as a text": ("node.status.nodeInfo.kubeletVersion >= 'v1.30.0'", ["ComparedAsText"]),
    "a version before that of the node": ("'1.30' < node.status.nodeInfo.kubeletVersion", ["ComparedAsText"]),
    "a kernel as a text": ("node.status.nodeInfo.kernelVersion > '5.10'", ["ComparedAsText"]),
    "a runtime as a text": ("node.status.nodeInfo.containerRuntimeVersion > 'containerd://1.7'", ["ComparedAsText"]),
    "a version in an annotation as a text": (
        "node.metadata.annotations[?'driver'].orValue('') >= 'v1.9'",
        ["ComparedAsText"],
    ),
    "a version that is meant": ("node.status.nodeInfo.kubeletVersion == 'v1.30.0'", []),
    # Parts of a time and sizes have bounds.
    "every day": ("now.getDayOfWeek() < 8", ["AlwaysPasses"]),
    "no day": ("now.getDayOfWeek() == 7", ["NeverPasses"]),
    "none of two days": ("now.getDayOfWeek() in [7, 8]", ["NeverPasses"]),
    "every hour": ("now.getHours('Europe/Berlin') <= 23", ["AlwaysPasses"]),
    "no hour": ("now.getHours() > 23", ["NeverPasses"]),
    "every month": ("12 >= now.getMonth()", ["AlwaysPasses"]),
    "any number": ("node.spec.taints.size() >= 0", ["AlwaysPasses"]),
    "less than none": ("node.spec.taints.size() < 0", ["NeverPasses"]),
    "the last hour": ("now.getHours() >= 23", []),
    "workdays": ("now.getDayOfWeek() > 0 && now.getDayOfWeek() < 6", []),
    "hours of a length of time": ("(now - node.metadata.creationTimestamp).getHours() > 48", []),
    "no taints": ("node.spec.taints.size() > 0", []),
    # What raises for nodes and pods that another value would let through.
    "no team, as an empty text": (
        "node.metadata.annotations['team'] == '' || node.spec.unschedulable",
        ["AbsentRaises"],
    ),
    "some team": ("node.metadata.annotations[?'team'].orValue('') == ''", []),
    "a day of the weekend that is none": ("now.getDayOfWeek() in [6, 7]", ["WrongUnit"]),
    "a day that is none, or another": ("now.getDayOfWeek() == 6 || now.getDayOfWeek() == 7", ["WrongUnit"]),
    "days of the weekend": ("now.getDayOfWeek() in [0, 6]", []),
    "no devices requested": ("request['nvidia.com/gpu'] == 0.0 || node.spec.unschedulable", ["AbsentRaises"]),
    "few devices requested": ("request['nvidia.com/gpu'] < 2.0", ["AbsentRaises"]),
    "not so many devices": ("request['nvidia.com/gpu'] != 2.0", ["AbsentRaises"]),
    "as many devices as there are": (
        "free['nvidia.com/gpu'] >= request['nvidia.com/gpu']",
        ["EventuallyConsistent", "AbsentRaises"],
    ),
    "devices with those that are requested": (
        "requested['nvidia.com/gpu'] + request['nvidia.com/gpu'] <= 8.0",
        ["EventuallyConsistent", "AbsentRaises"],
    ),
    "what would be left of devices": (
        "free['nvidia.com/gpu'] - 2.0 * request['nvidia.com/gpu'] >= 0.0",
        ["EventuallyConsistent", "AbsentRaises"],
    ),
    "devices for those who request none": (
        "free['nvidia.com/gpu'] >= request[?'nvidia.com/gpu'].orValue(0.0)",
        ["EventuallyConsistent", "AbsentRaises"],
    ),
    "no devices on the node": ("allocatable['nvidia.com/gpu'] == 0.0", ["AbsentRaises"]),
    "little cpu of a container": (
        "pod.spec.containers.all(c, quantity(c.resources.requests['cpu']).asApproximateFloat() < 2.0)",
        ["AbsentRaises"],
    ),
    "less cpu of a container": (
        "quantity(pod.spec.containers[0].resources.requests['cpu']).isLessThan(quantity('2'))",
        ["AbsentRaises"],
    ),
    "a low number in a label of the pod": ("int(pod.metadata.labels['rank']) < 3", ["AbsentRaises"]),
    "a short time in an annotation": ("duration(node.metadata.annotations['for']) < duration('8h')", ["AbsentRaises"]),
    "a device at least": ("free['nvidia.com/gpu'] >= 1.0", ["EventuallyConsistent"]),
    "devices requested": ("request['nvidia.com/gpu'] > 0.0", []),
    "few devices, where some are": ("!('nvidia.com/gpu' in request) || request['nvidia.com/gpu'] < 2.0", []),
    "few devices or none": ("request[?'nvidia.com/gpu'].orValue(0.0) < 2.0", []),
    "cpu, which every pod has": ("request['cpu'] < 2.0", []),
    "a high number in a label": ("int(pod.metadata.labels['rank']) >= 3", []),
    "a number in a label": ("int(pod.metadata.labels['rank']) == 0", []),
    "not a value of a label that a node may lack": (
        f"{LABELS}['env'] != 'prod'",
        ["InvisibleToAutoscalers", "AbsentRaises"],
    ),
    "not one of some": (f"!({LABELS}['env'] in ['prod', 'qa'])", ["InvisibleToAutoscalers", "AbsentRaises"]),
    "not a value of the pod's label": ("node.spec.podCIDR != pod.metadata.labels['app']", ["AbsentRaises"]),
    "pods that may go everywhere but": (
        "pod.metadata.annotations['class'] != 'batch' || 'batch' in node.metadata.annotations",
        ["AbsentRaises"],
    ),
    "pods on the node that lack a label": (
        "!pods.exists(p, p.metadata.labels['app'] == pod.metadata.labels[?'app'].orValue(''))",
        ["CountsPods", "AbsentRaises"],
    ),
    "counting pods that lack a label": (
        "pods.filter(p, p.metadata.labels['app'] == 'x').size() < 3",
        ["CountsPods", "AbsentRaises"],
    ),
    # Amounts of another unit.
    "millicores": ("requested['cpu'] <= 4000.0", ["EventuallyConsistent", "WrongUnit"]),
    "gibibytes": ("requested['memory'] <= 16.0", ["EventuallyConsistent", "WrongUnit"]),
    "mebibytes": ("100.0 < free['memory']", ["EventuallyConsistent", "WrongUnit"]),
    "cores beside bytes": ("free['cpu'] > request['memory']", ["EventuallyConsistent", "WrongUnit"]),
    "mebibytes of a quantity": (
        "quantity(node.status.allocatable['memory']).asApproximateFloat() > 512.0",
        ["WrongUnit"],
    ),
    "a quantity as a number": ("double(node.status.allocatable['memory']) > 1e9", ["WrongUnit"]),
    "a share of 1 as a percentage": (
        "requested['cpu'] / allocatable['cpu'] < 80.0",
        ["EventuallyConsistent", "WrongUnit"],
    ),
    "a share with the pod as a percentage": (
        "90.0 > (requested['memory'] + request['memory']) / allocatable['memory']",
        ["EventuallyConsistent", "WrongUnit"],
    ),
    "a percentage as a share of 1": (
        "100.0 * requested['cpu'] / allocatable['cpu'] < 0.8",
        ["EventuallyConsistent", "WrongUnit"],
    ),
    # Nothing is said of these.
    "a percentage": ("100.0 * requested['cpu'] / allocatable['cpu'] < 80.0", ["EventuallyConsistent"]),
    "more than there is": ("(requested['cpu'] + request['cpu']) / allocatable['cpu'] < 1.5", ["EventuallyConsistent"]),
    "one percent": ("100.0 * free['cpu'] / allocatable['cpu'] > 1.0", ["EventuallyConsistent"]),
    "some memory at all": ("allocatable['memory'] > 0.0", []),
    "memory in gibibytes": ("allocatable['memory'] / 1073741824.0 > 16.0", []),
    "many cores": ("allocatable['cpu'] > 256.0", []),
    "a share of memory": ("requested['memory'] / allocatable['memory'] < 0.8", ["EventuallyConsistent"]),
    "a number of devices": ("int(node.status.allocatable['example.com/gpu']) > 4", []),
    "memory as a quantity": ("quantity(node.status.allocatable['memory']).isGreaterThan(quantity('16Gi'))", []),
    "memory in bytes": ("allocatable['memory'] > 16.0 * 1024.0 * 1024.0 * 1024.0", []),
    "a quantity that is another": ("node.status.allocatable['memory'] != '16Gi' && 'b' in allocatable", []),
    "a name that is given to nothing": ("cel.bind(x, pod.spec.nodeName, 5) == 5 || node.spec.unschedulable", []),
    "texts in their order": ("node.metadata.annotations['day'] > '2026-01-31'", []),
    "numbers of one length": ("node.metadata.annotations['rack'] > '0050'", []),
    "an annotation as a number": ("int(node.metadata.annotations['gen']) > 10", []),
    "texts of a list": ("node.spec.podCIDR < '10'", []),
    "a division by something": ("node.spec.taints.size() / (node.spec.taints.size() - 1) == 1", []),
    "a division that is never done": ("node.spec.unschedulable || (false && 1 / 0 == 1)", []),
    "a division of doubles": ("allocatable['cpu'] / 0.0 > 1.0", []),
    "a time zone": ("node.metadata.creationTimestamp.getHours('Europe/Berlin') == 1", ["RunsOnEngine"]),
    "a format": ("'%s-%d'.format([node.spec.podCIDR, 1]) == 'a'", ["RunsOnEngine"]),
    "names of their own": ("pods.exists(one, one.metadata.name == node.spec.podCIDR)", ["EventuallyConsistent"]),
    "a victim where there is none": ("node.spec.taints.exists(victim, victim.key == 'a')", []),
    "a value that is wanted": ("node.metadata.annotations['env'] == 'prod' && !node.spec.unschedulable", []),
    "not a value where it is there": (
        "'env' in node.metadata.annotations && node.metadata.annotations['env'] != 'prod'",
        [],
    ),
    "not a value where it is there, the other way round": (
        "!has(node.metadata.annotations.env) || node.metadata.annotations.env != 'prod'",
        [],
    ),
    "not a value, by a choice": (
        "node.metadata.annotations[?'env'].hasValue() ? node.metadata.annotations['env'] != 'prod' : true",
        [],
    ),
    "a choice of values": (
        "('env' in node.metadata.annotations ? node.metadata.annotations['env'] : '') != 'prod'",
        [],
    ),
    "not a value, or a default that passes": (
        "node.metadata.annotations[?'env'].orValue('') == '' || node.metadata.annotations['env'] != 'prod'",
        [],
    ),
    "a label that all nodes have": (f"{LABELS}['kubernetes.io/os'] != 'windows'", ["InvisibleToAutoscalers"]),
    "a resource that all nodes have": ("node.status.capacity['cpu'] != '4'", []),
    "pods on the node that may lack a label": (
        "!pods.exists(p, p.metadata.labels[?'app'].orValue('') == 'x')",
        ["CountsPods"],
    ),
    "pods on the node that are asked first": (
        "pods.filter(p, 'app' in p.metadata.labels && p.metadata.labels['app'] == 'x').size() < 3",
        ["CountsPods"],
    ),
    "containers that are asked first": (
        (
            "!pod.spec.containers.exists(c, 'gpu' in c.resources.limits && c.resources.limits['gpu'] != '0')"
            " || 'gpu' in node.metadata.annotations"
        ),
        [],
    ),
    "bounds": ("allocatable['cpu'] > 2.0 && allocatable['cpu'] < 4.0", []),
    "either value": ("node.spec.podCIDR == 'x' || node.spec.podCIDR == 'y'", []),
    "neither value": ("node.spec.podCIDR != 'x' && node.spec.podCIDR != 'y'", []),
    "two labels": (f"{LABELS}['a'] == 'x' && node.metadata.annotations['a'] == 'y'", []),
    "what macros make": ("node.spec.taints.exists(t, t.key == 'a') && node.spec.taints.exists(t, t.key == 'b')", []),
    "a choice": ("node.spec.unschedulable ? node.spec.podCIDR == 'a' : node.spec.podCIDR == 'b'", []),
    "what is made of a pod": ("node.spec.podCIDR != pod.metadata.generateName", []),
    "the pod's labels": ("node.spec.podCIDR == pod.metadata.labels['app']", []),
    "data": ("node.spec.taints.size() == 0", []),
}


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_of_a_filter_it_is_said(expression: str, want: list[str]) -> None:
    found = warnings_of_filter(expression)
    assert reasons_of(found) == want
    assert all(warning.path == ("spec", "filters", 0, "expression") for warning in found)


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_an_amount_that_follows_its_hint_has_its_unit(expression: str, want: list[str]) -> None:
    for one in warnings_of_filter(expression):
        if one.reason == "WrongUnit" and one.hint.startswith("write `"):
            number = re.search(r"(?<![\d.])(?!100\.0)\d+\.\d+\b", expression)
            code = one.hint.split("`")[1]
            assert number is None or "WrongUnit" not in reasons_of(
                warnings_of_filter(expression.replace(number[0], code))
            )


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_a_rule_that_follows_its_hint_has_its_warning_no_more(expression: str, want: list[str]) -> None:
    for one in warnings_of_filter(expression):
        if one.reason == "ComparedAsText" and one.hint.startswith("write `") and "c." not in one.hint:
            assert "ComparedAsText" not in reasons_of(warnings_of_filter(one.hint.split("`")[1]))
        if one.reason == "AbsentRaises" and (found := re.match(r"write `(.+)\[\?(.+)\]\.orValue\((.+)\)`", one.hint)):
            followed = expression.replace(f"{found[1]}[{found[2]}]", f"{found[1]}[?{found[2]}].orValue({found[3]})")
            assert followed != expression
            assert one.message not in [other.message for other in warnings_of_filter(followed)]


def test_a_version_is_compared_as_it_is_meant() -> None:
    for value, want in {
        "v1.30.0": "semver(node.status.nodeInfo.kubeletVersion, true).compareTo(semver('1.30.0-0')) >= 0",
        "1.30": "semver(node.status.nodeInfo.kubeletVersion, true).compareTo(semver('1.30.0-0')) >= 0",
    }.items():
        [warning] = warnings_of_filter(f"node.status.nodeInfo.kubeletVersion >= '{value}'")
        assert warning.message == "versions are strings, and `>=` compares them character by character"
        assert warning.hint == f"write `{want}`"


def test_what_is_absent_of_amounts_is_named_with_its_cure() -> None:
    for expression, message, hint in (
        (
            "request['nvidia.com/gpu'] == 0.0",
            (
                "this raises an error for a pod that requests no 'nvidia.com/gpu', and an error rejects the node "
                "(onError: Reject)"
            ),
            "write `request[?'nvidia.com/gpu'].orValue(0.0)`, or check `'nvidia.com/gpu' in request` first",
        ),
        (
            "allocatable['nvidia.com/gpu'] == 0.0",
            "this raises an error on a node without 'nvidia.com/gpu', and an error rejects the node (onError: Reject)",
            "write `allocatable[?'nvidia.com/gpu'].orValue(0.0)`, or check `'nvidia.com/gpu' in allocatable` first",
        ),
    ):
        [warning] = warnings_of_filter(expression)
        assert (warning.message, warning.hint) == (message, hint)


def test_the_bounds_of_a_part_of_a_time_are_named() -> None:
    for expression, want in {
        "now.getDayOfWeek() < 8": "getDayOfWeek() is from 0 to 6, Sunday is 0",
        "now.getMonth() == 12": "no node is left for a pod; getMonth() is from 0 to 11, January is 0",
        "now.getHours() >= 22 && now.getHours() < 6": (
            "no node is left for a pod; getHours() is from 0 to 23, and hours over midnight are joined by `||`"
        ),
    }.items():
        [warning] = warnings_of_filter(expression)
        assert warning.hint == want


def test_shares_are_compared_with_what_is_meant() -> None:
    for expression, want in {
        "requested['cpu'] / allocatable['cpu'] < 80.0": "write `0.8`, if 80% are meant",
        "100.0 * requested['cpu'] / allocatable['cpu'] < 0.8": "write `80.0`, if 80% are meant",
    }.items():
        [warning] = [one for one in warnings_of_filter(expression) if one.reason == "WrongUnit"]
        assert warning.hint == want


def test_the_reasons_are_words_of_an_api() -> None:
    assert len(LintCode) <= 26, "each must be worth a reader's time"
    assert all(reason.value == reason.name.title().replace("_", "") for reason in LintCode)
    assert {reason.value for reason in LintCode} >= {want for _, wants in FILTERS.values() for want in wants}
