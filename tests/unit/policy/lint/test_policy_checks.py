"""Warnings about policies that compile, and policies without warnings."""

import re
from pathlib import Path
from typing import Any

import pytest
from generate.crds import installed_policy

from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.policy_checks import warnings
from fairlead.policy.lint.rule_checks import MEASURED_BURST
from fairlead.strategies.registry import installed

_MODEL = installed_policy()
_RULES = CompileOptions({strategy.name: strategy for strategy in installed()})
_GOOD = {"name": "good", "expression": "node.spec.unschedulable == false"}
_L = "node.metadata.labels"


def said_of(**spec: Any) -> list[LintWarning]:
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "some"},
        "spec": spec,
    }
    parsed = parse_policy(policy, _MODEL)
    return warnings(compile_policy(parsed, _RULES), parsed)


def of_filter(expression: str, **more: Any) -> list[LintWarning]:
    return said_of(filters=[{"name": "it", "expression": expression, **more}])


def of_score(expression: str, **more: Any) -> list[LintWarning]:
    data = [{"name": "load", "nodeLabel": {"key": "load"}}] if "data.load" in expression else []
    variables = [{"name": "count", "expression": "double(pods.size())"}] if "variables.count" in expression else []
    return said_of(data=data, variables=variables, scores=[{"name": "it", "expression": expression, **more}])


def reasons(found: list[LintWarning]) -> list[str]:
    return [str(warning.reason) for warning in found]


FILTERS: dict[str, tuple[str, list[str]]] = {
    "it is false": ("false", ["NeverPasses"]),
    "it is true": ("true", ["AlwaysPasses"]),
    "it comes to false": ("1 + 1 == 3", ["NeverPasses"]),
    "it comes to true": ("['a', 'b'].exists(x, x == 'a')", ["AlwaysPasses"]),
    "two values at once": (f"{_L}['a'] == 'x' && {_L}['a'] == 'y'", ["NeverPasses"]),
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
    "labels that cannot be": (f"!('a' in {_L}) && {_L}[?'a'].orValue('') == 'x'", ["NeverPasses"]),
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
    "labels of nodes": (f"{_L}['a'] == 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes in a way that affinity has not": (f"{_L}['a'].startsWith('x')", ["InvisibleToAutoscalers"]),
    "the name of nodes": ("node.metadata.name != 'x'", ["InvisibleToAutoscalers"]),
    "labels of nodes against those of pods": (
        f"{_L}['a'] == pod.metadata.labels['a']",
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
        f"{_L}['env'] != 'prod'",
        ["InvisibleToAutoscalers", "AbsentRaises"],
    ),
    "not one of some": (f"!({_L}['env'] in ['prod', 'qa'])", ["InvisibleToAutoscalers", "AbsentRaises"]),
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
    "a label that all nodes have": (f"{_L}['kubernetes.io/os'] != 'windows'", ["InvisibleToAutoscalers"]),
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
    "two labels": (f"{_L}['a'] == 'x' && node.metadata.annotations['a'] == 'y'", []),
    "what macros make": ("node.spec.taints.exists(t, t.key == 'a') && node.spec.taints.exists(t, t.key == 'b')", []),
    "a choice": ("node.spec.unschedulable ? node.spec.podCIDR == 'a' : node.spec.podCIDR == 'b'", []),
    "what is made of a pod": ("node.spec.podCIDR != pod.metadata.generateName", []),
    "the pod's labels": ("node.spec.podCIDR == pod.metadata.labels['app']", []),
    "data": ("node.spec.taints.size() == 0", []),
}


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_of_a_filter_it_is_said(expression: str, want: list[str]) -> None:
    found = of_filter(expression)
    assert reasons(found) == want
    assert all(warning.path == ("spec", "filters", 0, "expression") for warning in found)


SCORES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a number": ("50.0", {}, ["HasNoEffect"]),
    "nothing": ("0", {"weight": 5}, ["HasNoEffect"]),
    "nothing, in other words": ("node.spec.unschedulable ? 0.0 : 1.0 - 1.0", {}, ["HasNoEffect"]),
    "one number in both cases": ("node.spec.unschedulable ? 7 : 7", {}, ["HasNoEffect"]),
    "what is the pod's": ("pod.spec.priority", {}, ["HasNoEffect"]),
    "what the pod asks for": ("request['cpu']", {}, ["HasNoEffect"]),
    "the time": ("now.getHours()", {}, ["HasNoEffect"]),
    "more than 100": ("node.spec.unschedulable ? 1000 : 0", {}, ["ScoreOutOfRange"]),
    "less than 0": ("node.spec.unschedulable ? -100.0 : 0.0", {}, ["ScoreOutOfRange"]),
    "pods": ("-pods.size()", {"normalize": "Rank"}, ["EventuallyConsistent"]),
    "fewer pods, below 0": ("-pods.size()", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "less of what is left, below 0": (
        "-free[?'example.com/gpu'].orValue(0.0)",
        {"normalize": "None"},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "fewer pods, through a variable": ("-variables.count", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    # What the range of a score shows.
    "bytes": ("free['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes that a node has": ("allocatable['ephemeral-storage']", {}, ["ScoreOutOfRange"]),
    "bytes that would be left": ("free.memory - request.memory", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "kibibytes": ("free['memory'] / 1024.0", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes beside cores": ("free['cpu'] + free['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes, with a default": ("free[?'hugepages-2Mi'].orValue(0.0)", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes of the node's status": (
        "quantity(node.status.allocatable['memory']).asApproximateFloat()",
        {},
        ["ScoreOutOfRange"],
    ),
    "a fraction of 1": ("free['memory'] / allocatable['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "the rest of 1": ("1.0 - requested['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "the mean of two fractions": (
        "(free['cpu'] / allocatable['cpu'] + free['memory'] / allocatable['memory']) / 2.0",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "one or nothing": ("node.spec.unschedulable ? 0 : 1", {}, ["ScoreOutOfRange"]),
    "a share below 0": ("-requested['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "a share taken from 100": (
        "100.0 - requested['cpu'] / allocatable['cpu']",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "a share added to 50": ("50.0 + free['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "a percentage of whole numbers": ("100 - pods.size() / 110 * 100", {}, ["EventuallyConsistent", "WrongUnit"]),
    "a percentage of whole numbers, multiplied first": ("100 - 100 * pods.size() / 110", {}, ["EventuallyConsistent"]),
    "99 or 100": ("node.spec.unschedulable ? 99 : 100", {}, ["ScoreOutOfRange"]),
    "never below 100": (
        "200.0 - 100.0 * free['cpu'] / allocatable['cpu']",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    # Nothing is said of these.
    "a share taken from 100, stretched": (
        "100.0 - requested['cpu'] / allocatable['cpu']",
        {"normalize": "MinMax"},
        ["EventuallyConsistent"],
    ),
    "90 or 100": ("node.spec.unschedulable ? 90 : 100", {}, []),
    "bytes, stretched": ("free['memory']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "a fraction, stretched": ("free['cpu'] / allocatable['cpu']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "bytes, kept within bounds": ("math.least(100.0, free['memory'])", {}, ["EventuallyConsistent"]),
    "cores": ("free['cpu']", {}, ["EventuallyConsistent"]),
    "a measured fraction, of which nothing is known": ("data.load", {}, []),
    "a fraction of a measured value": ("1.0 - data.load / 100.0", {}, []),
    "the memory of as many pods": ("free['memory'] / request['memory']", {}, ["EventuallyConsistent"]),
    "what may be above 0, turned round": ("-(requested['cpu'] - 3.0)", {}, ["EventuallyConsistent"]),
    "a default below 0, turned round": ("-free[?'example.com/gpu'].orValue(-1.0)", {}, ["EventuallyConsistent"]),
    "more than 100, stretched": ("node.spec.unschedulable ? 1000 : 0", {"normalize": "MinMax"}, []),
    "0 or 100": ("node.spec.unschedulable ? 0 : 100", {}, []),
    "labels of nodes": (f"'a' in {_L} ? 100 : 0", {}, []),
    "what a node has": ("allocatable['cpu']", {}, []),
    "what is left, turned round and stretched": ("-free['cpu']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "a percentage": ("100.0 * free['cpu'] / allocatable['cpu']", {}, ["EventuallyConsistent"]),
    "a share in percent": ("free['memory'] / allocatable['memory'] * 100.0", {}, ["EventuallyConsistent"]),
    "the share that is not requested": (
        "100.0 - 100.0 * (requested['memory'] / allocatable['memory'])",
        {},
        ["EventuallyConsistent"],
    ),
    "gibibytes": ("allocatable['memory'] / 1073741824.0", {}, []),
    "fewer pods": ("100 - pods.size()", {}, ["EventuallyConsistent"]),
    "what is kept within bounds": (
        "math.greatest(0.0, math.least(100.0, free['cpu'] - 5.0, 200.0))",
        {},
        ["EventuallyConsistent"],
    ),
    "a value from outside": ("-data.load", {}, []),
}


@pytest.mark.parametrize(("expression", "more", "want"), SCORES.values(), ids=SCORES)
def test_of_a_score_it_is_said(expression: str, more: dict[str, Any], want: list[str]) -> None:
    assert reasons(of_score(expression, **more)) == want


@pytest.mark.parametrize(("expression", "more", "want"), SCORES.values(), ids=SCORES)
def test_a_score_that_follows_its_hint_is_within_its_range(
    expression: str, more: dict[str, Any], want: list[str]
) -> None:
    shown = [re.search("`([^`]+)`", one.hint) for one in of_score(expression, **more) if one.reason == want[0]]
    for found in filter(None, shown):
        assert "ScoreOutOfRange" not in reasons(of_score(found[1]))


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_an_amount_that_follows_its_hint_has_its_unit(expression: str, want: list[str]) -> None:
    for one in of_filter(expression):
        if one.reason == "WrongUnit" and one.hint.startswith("write `"):
            number = re.search(r"(?<![\d.])(?!100\.0)\d+\.\d+\b", expression)
            code = one.hint.split("`")[1]
            assert number is None or "WrongUnit" not in reasons(of_filter(expression.replace(number[0], code)))


@pytest.mark.parametrize(("expression", "want"), FILTERS.values(), ids=FILTERS)
def test_a_rule_that_follows_its_hint_has_its_warning_no_more(expression: str, want: list[str]) -> None:
    for one in of_filter(expression):
        if one.reason == "ComparedAsText" and one.hint.startswith("write `") and "c." not in one.hint:
            assert "ComparedAsText" not in reasons(of_filter(one.hint.split("`")[1]))
        if one.reason == "AbsentRaises" and (found := re.match(r"write `(.+)\[\?(.+)\]\.orValue\((.+)\)`", one.hint)):
            followed = expression.replace(f"{found[1]}[{found[2]}]", f"{found[1]}[?{found[2]}].orValue({found[3]})")
            assert followed != expression
            assert one.message not in [other.message for other in of_filter(followed)]


def test_a_version_is_compared_as_it_is_meant() -> None:
    for value, want in {
        "v1.30.0": "semver(node.status.nodeInfo.kubeletVersion, true).compareTo(semver('1.30.0-0')) >= 0",
        "1.30": "semver(node.status.nodeInfo.kubeletVersion, true).compareTo(semver('1.30.0-0')) >= 0",
    }.items():
        [warning] = of_filter(f"node.status.nodeInfo.kubeletVersion >= '{value}'")
        assert warning.message == "versions are strings, and `>=` compares them character by character"
        assert warning.hint == f"write `{want}`"


def test_conditions_that_ask_for_a_resource_make_its_request_certain() -> None:
    rule = {"name": "it", "expression": "request['nvidia.com/gpu'] < 2.0"}
    asks = "pod.spec.containers.exists(c, 'nvidia.com/gpu' in c.resources.requests)"
    assert said_of(match={"conditions": [{"name": "a", "expression": asks}]}, filters=[rule]) == []
    assert reasons(said_of(filters=[rule])) == ["AbsentRaises"]


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
        [warning] = of_filter(expression)
        assert (warning.message, warning.hint) == (message, hint)


def test_the_bounds_of_a_part_of_a_time_are_named() -> None:
    for expression, want in {
        "now.getDayOfWeek() < 8": "getDayOfWeek() is from 0 to 6, Sunday is 0",
        "now.getMonth() == 12": "no node is left for a pod; getMonth() is from 0 to 11, January is 0",
        "now.getHours() >= 22 && now.getHours() < 6": (
            "no node is left for a pod; getHours() is from 0 to 23, and hours over midnight are joined by `||`"
        ),
    }.items():
        [warning] = of_filter(expression)
        assert warning.hint == want


def test_shares_are_compared_with_what_is_meant() -> None:
    for expression, want in {
        "requested['cpu'] / allocatable['cpu'] < 80.0": "write `0.8`, if 80% are meant",
        "100.0 * requested['cpu'] / allocatable['cpu'] < 0.8": "write `80.0`, if 80% are meant",
    }.items():
        [warning] = [one for one in of_filter(expression) if one.reason == "WrongUnit"]
        assert warning.hint == want


CONDITIONS: dict[str, tuple[str, list[str]]] = {
    "never": ("pod.spec.priority > 3 && pod.spec.priority < 2", ["NeverPasses"]),
    "always": ("pod.spec.priority > 3 || pod.spec.priority <= 3", ["AlwaysPasses"]),
    "identity": ("pod.metadata.name.startsWith('a')", ["PodIdentity"]),
    "a label that a pod may lack": ("pod.metadata.labels['team'] == 'x'", ["AbsentRaises"]),
    "an annotation that a pod may lack": ("pod.metadata.annotations.team != 'x'", ["AbsentRaises"]),
    "a label that a namespace may lack": ("namespaceObject.metadata.labels['team'] == 'x'", ["AbsentRaises"]),
    "a label that only urgent pods are asked for": (
        "pod.spec.priority > 3 && pod.metadata.labels['team'].startsWith('x')",
        ["AbsentRaises"],
    ),
    "one label asked for, and another read": (
        "'team' in pod.metadata.labels && pod.metadata.labels['tier'] == 'x'",
        ["AbsentRaises"],
    ),
    "a limit that a container may lack": (
        "pod.spec.containers.exists(c, c.resources.limits['gpu'] != '0')",
        ["AbsentRaises"],
    ),
    "containers counted that may lack a limit": (
        "pod.spec.containers.filter(c, c.resources.limits['gpu'] != '0').size() > 0",
        ["AbsentRaises"],
    ),
    "a quantity as a text": (
        "pod.spec.containers.exists(c, c.resources.limits[?'cpu'].orValue('0') > '1')",
        ["ComparedAsText"],
    ),
    "a label with a default": ("pod.metadata.labels[?'team'].orValue('') == 'x'", []),
    "a label that is asked for": ("'team' in pod.metadata.labels && pod.metadata.labels['team'] == 'x'", []),
    "a label, the other way round": ("pod.metadata.labels['team'] == 'x' && has(pod.metadata.labels.team)", []),
    "labels that are looked through": (
        "pod.metadata.labels.exists(k, k == 'team') && pod.metadata.labels['team'] == 'x'",
        [],
    ),
    "the label that every namespace has": ("namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'a'", []),
    "a limit that is asked for": ("pod.spec.containers.exists(c, 'gpu' in c.resources.limits)", []),
    "nothing": ("pod.spec.priority > 3", []),
}


@pytest.mark.parametrize(("expression", "want"), CONDITIONS.values(), ids=CONDITIONS)
def test_of_a_condition_it_is_said(expression: str, want: list[str]) -> None:
    match = {"conditions": [{"name": "it", "expression": expression}]}
    assert reasons(said_of(match=match, filters=[_GOOD])) == want


def test_a_label_that_is_surely_there_may_be_read() -> None:
    reads = {"name": "it", "expression": "pod.metadata.labels['team'] != 'x' || node.spec.unschedulable"}
    assert reasons(said_of(filters=[reads])) == ["AbsentRaises"]
    for match in (
        {"podSelector": {"matchLabels": {"team": "y"}}},
        {"podSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
        {"podSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["y", "z"]}]}},
        {"conditions": [{"name": "a", "expression": "'team' in pod.metadata.labels"}]},
        {"conditions": [{"name": "a", "expression": "pod.metadata.labels[?'team'].orValue('x') != 'x'"}]},
    ):
        assert said_of(match=match, filters=[reads]) == []
    both = [
        {"name": "a", "expression": "pod.metadata.labels['team'] != 'x'"},
        {"name": "b", "expression": "'team' in pod.metadata.labels"},
    ]
    assert said_of(match={"conditions": both}, filters=[_GOOD]) == []


def test_what_a_condition_that_raises_does_depends_on_the_rules() -> None:
    match = {"conditions": [{"name": "it", "expression": "pod.metadata.labels['team'] == 'x'"}]}
    [of_filters] = said_of(match=match, filters=[_GOOD], scores=[{"name": "b", "expression": "allocatable['cpu']"}])
    assert of_filters.message == (
        "this raises an error for a pod without the label 'team', and the policy's filters then reject it on every node"
    )
    assert of_filters.hint == (
        "write `pod.metadata.labels[?'team'].orValue('')`, or check `'team' in pod.metadata.labels` first"
    )
    [of_protections] = said_of(match=match, preemption={"protect": [{"name": "a", "expression": "true"}]})
    assert of_protections.message.endswith("and the policy's protections then hold for every victim")
    assert said_of(match=match, scores=[{"name": "b", "expression": "allocatable['cpu']"}]) == []


def test_a_filter_that_passes_what_it_cannot_decide_on_may_read_what_is_absent() -> None:
    assert reasons(of_filter("node.metadata.annotations['env'] != 'prod'")) == ["AbsentRaises"]
    assert of_filter("node.metadata.annotations['env'] != 'prod'", onError="Pass") == []


def test_what_is_absent_is_named_with_its_cure() -> None:
    for expression, want in {
        "pod.spec.containers.exists(c, c.resources.limits['gpu'] != '0')": (
            (
                "this raises an error where c.resources.limits has no 'gpu', and the policy's filters then reject it "
                "on every node"
            ),
            "write `c.resources.limits[?'gpu'].orValue('0')`, or check `'gpu' in c.resources.limits` first",
        ),
        "pod.metadata.ownerReferences[0].kind == 'Job'": (
            (
                "this raises an error where pod.metadata.ownerReferences is empty, and the policy's filters then "
                "reject it on every node"
            ),
            "check `pod.metadata.ownerReferences.size() > 0` first, or use `pod.metadata.ownerReferences.exists(...)`",
        ),
        "'x' == namespaceObject.metadata.annotations['a']": (
            (
                "this raises an error for a namespace without the annotation 'a', and the policy's filters then "
                "reject it on every node"
            ),
            (
                "write `namespaceObject.metadata.annotations[?'a'].orValue('')`, or check `'a' in "
                "namespaceObject.metadata.annotations` first"
            ),
        ),
    }.items():
        [warning] = said_of(match={"conditions": [{"name": "it", "expression": expression}]}, filters=[_GOOD])
        assert (warning.message, warning.hint) == want


@pytest.mark.parametrize(
    ("expression", "default"),
    [
        ("int(pod.metadata.annotations['n']) != 3", "'0'"),
        ("!(quantity(pod.metadata.annotations['n']).isGreaterThan(quantity('1Gi')))", "'0'"),
        ("duration(pod.metadata.annotations['n']) != duration('8h')", "'0s'"),
        ("pod.metadata.annotations['n'] != 'a'", "''"),
        ("pod.spec.containers.exists(c, c.resources.limits['n'] != '') && node.spec.unschedulable", "''"),
    ],
)
def test_the_default_of_what_is_absent_can_be_converted(expression: str, default: str) -> None:
    [warning] = of_filter(expression)
    assert f".orValue({default})`" in (warning.hint or "")
    followed = expression.replace("['n']", f"[?'n'].orValue({default})")
    assert of_filter(followed) == []


PROTECTIONS: dict[str, tuple[str, list[str]]] = {
    "always": ("true", []),
    "never": ("victim.spec.priority > 2 && victim.spec.priority < 1", ["NeverPasses"]),
    "a label that a victim may lack": ("victim.metadata.labels['keep'] == 'true'", ["AbsentRaises"]),
    "a label with a default": ("victim.metadata.labels[?'keep'].orValue('') == 'true'", []),
    "all but those with a value": ("victim.metadata.labels['cheap'] != 'true'", []),
    "the pod's label, where the victim is meant": ("pod.metadata.labels['keep'] == 'true'", ["HasNoEffect"]),
    "the pod, where the victim is meant": ("'keep' in pod.metadata.annotations", ["HasNoEffect"]),
    "the node, where the victim is meant": ("node.metadata.labels[?'keep'].orValue('') == 'true'", ["HasNoEffect"]),
    "the pod and the victim": ("victim.spec.priority >= pod.spec.priority - 10", []),
    "a part of the day": ("now.getHours() >= 22", []),
}


@pytest.mark.parametrize(("expression", "want"), PROTECTIONS.values(), ids=PROTECTIONS)
def test_of_a_protection_it_is_said(expression: str, want: list[str]) -> None:
    assert reasons(said_of(preemption={"protect": [{"name": "a", "expression": expression}]})) == want


WORDS: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "memory": (
        "node.status.allocatable[?'memory'].orValue('0') > '16Gi'",
        (1, 49),
        "quantities are strings, and `>` compares them character by character",
        (
            "write `quantity(node.status.allocatable[?'memory'].orValue('0')).compareTo(quantity('16Gi')) > 0`, or "
            "`allocatable['memory'] > 17179869184.0`"
        ),
    ),
    "a capacity": (
        "'4' <= node.status.capacity[?'cpu'].orValue('1')",
        (1, 5),
        "quantities are strings, and `<=` compares them character by character",
        "write `quantity('4').compareTo(quantity(node.status.capacity[?'cpu'].orValue('1'))) <= 0`",
    ),
    "a number in an annotation": (
        "node.metadata.annotations['gen'] > '10'",
        (1, 34),
        "annotations are strings, and `>` compares them character by character",
        "write `int(node.metadata.annotations['gen']) > 10`",
    ),
    "a fraction": (
        "'1.5' < node.metadata.annotations['gen']",
        (1, 7),
        "annotations are strings, and `<` compares them character by character",
        "write `1.5 < double(node.metadata.annotations['gen'])`; for versions, compare the parts as numbers",
    ),
}


@pytest.mark.parametrize(("expression", "place", "message", "hint"), WORDS.values(), ids=WORDS)
def test_a_part_is_named_with_its_place_and_its_cure(
    expression: str, place: tuple[int, int], message: str, hint: str
) -> None:
    assert (place, message, hint) in [(one.place, one.message, one.hint) for one in of_filter(expression)]


def test_of_a_great_deal_only_some_is_said() -> None:
    labels = " && ".join(f"node.metadata.annotations.k{at} != 'x'" for at in range(90))
    assert reasons(of_filter(labels)) == ["AbsentRaises"] * 8


def test_what_a_variable_says_is_said_where_it_stands() -> None:
    found = said_of(
        variables=[
            {"name": "old", "expression": "node.metadata.annotations['gen'] > '10'"},
            {"name": "memory", "expression": "node.status.allocatable[?'memory'].orValue('0')"},
        ],
        filters=[{"name": "a", "expression": "variables.old || variables.memory > '16Gi'"}],
    )
    assert [(str(one.reason), one.path) for one in found] == [
        ("ComparedAsText", ("spec", "variables", 0, "expression")),
        ("ComparedAsText", ("spec", "filters", 0, "expression")),
    ]


def test_a_scheduler_that_is_not_ours_is_warned_of() -> None:
    [found] = said_of(schedulerName="default-scheduler", filters=[_GOOD])
    assert (found.reason, found.severity, found.path) == (
        LintCode.DEFAULT_SCHEDULER,
        "warning",
        ("spec", "schedulerName"),
    )


_IN_A = {"key": "a", "operator": "In", "values": ["x"]}
MATCHES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "two values of one label": (
        {"podSelector": {"matchLabels": {"a": "x"}, "matchExpressions": [{**_IN_A, "values": ["y"]}]}},
        ["MatchesNothing"],
    ),
    "a value that is ruled out": (
        {"podSelector": {"matchExpressions": [_IN_A, {**_IN_A, "operator": "NotIn"}]}},
        ["MatchesNothing"],
    ),
    "there and not there": (
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]
            }
        },
        ["MatchesNothing"],
    ),
    "another namespace by its label": (
        {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}},
        ["MatchesNothing"],
    ),
    "the same namespace by its label": (
        {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}},
        [],
    ),
    "there, and not a value": (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}, {**_IN_A, "operator": "NotIn"}]}},
        [],
    ),
    "two labels": ({"podSelector": {"matchLabels": {"a": "x", "b": "y"}}}, []),
    "all": ({"podSelector": {}}, []),
}


@pytest.mark.parametrize(("match", "want"), MATCHES.values(), ids=MATCHES)
def test_of_what_is_matched_it_is_said(match: dict[str, Any], want: list[str]) -> None:
    assert reasons(said_of(match=match, filters=[_GOOD])) == want


def test_a_filter_that_cannot_decide_may_pass_a_node_all_the_same() -> None:
    [warning] = of_filter(f"{_L}['a'] == 'x' && {_L}['a'] == 'y'", onError="Pass")
    assert warning.hint == "only nodes on which it raises an error pass"


def test_what_filters_on_labels_would_be_as_affinity_is_printed() -> None:
    [warning] = of_filter(f"{_L}['a'] == 'x'")
    assert "- key: a\n          operator: In\n          values:\n          - x\n" in warning.hint
    [warning] = of_filter(f"{_L}['a'] == pod.metadata.labels['a']")
    assert "depends on the pod" in warning.hint
    [warning] = of_filter(f"{_L}['a'].startsWith('x')")
    assert "no nodeAffinity says the same" in warning.hint
    [warning] = of_filter(f"{_L}['a'] == 'x' && now.getHours() > 3")
    assert "no nodeAffinity says the same" in warning.hint


def test_of_what_autoscalers_do_not_see_it_is_said_what_is_read() -> None:
    for expression, want in {
        f"{_L}['a'] == 'x'": "this reads only labels of nodes, ",
        "node.metadata.name != 'x'": "this reads only the name of nodes, ",
        f"{_L}['a'] == 'x' || node.metadata.name in ['x', 'y']": "this reads only labels and the name of nodes, ",
    }.items():
        [note] = of_filter(expression)
        assert note.message.startswith(want)


def test_resolvable_has_no_effect_yet() -> None:
    [warning] = of_filter("node.spec.unschedulable", resolvable=True)
    assert (warning.reason, warning.path) == (LintCode.HAS_NO_EFFECT, ("spec", "filters", 0, "resolvable"))
    assert of_filter("node.spec.unschedulable", resolvable=False) == []


def test_variables_and_data_that_nothing_uses_are_named() -> None:
    found = said_of(
        variables=[
            {"name": "used", "expression": "node.spec.unschedulable"},
            {"name": "through", "expression": "variables.used"},
            {"name": "idle", "expression": "variables.used"},
        ],
        data=[
            {"name": "read", "nodeLabel": {"key": "a"}},
            {"name": "asked", "nodeLabel": {"key": "b"}},
            {"name": "never", "nodeLabel": {"key": "c"}},
        ],
        filters=[{"name": "a", "expression": "variables.through && data.read > 1.0"}],
        scores=[{"name": "b", "expression": "data[?'asked'].orValue(0.0)"}],
    )
    assert [(str(one.reason), one.path) for one in found] == [
        ("UnusedData", ("spec", "data", 2, "name")),
        ("UnusedVariable", ("spec", "variables", 2, "name")),
    ]


def test_data_of_which_all_is_read_is_used() -> None:
    data = [{"name": "a", "nodeLabel": {"key": "a"}}]
    assert said_of(data=data, filters=[{"name": "a", "expression": "data.size() == 1"}]) == []


def test_a_variable_that_decides_is_followed() -> None:
    found = said_of(
        variables=[{"name": "low", "expression": "allocatable['cpu'] < 2.0"}, {"name": "two", "expression": "2.0"}],
        filters=[{"name": "a", "expression": "variables.low && allocatable['cpu'] > variables.two"}],
    )
    assert reasons(found) == ["NeverPasses"]


def test_variables_that_double_at_each_step_are_followed_as_far_as_they_may_be_written() -> None:
    variables = [{"name": "v0", "expression": "node.spec.unschedulable"}]
    variables += [{"name": f"v{at}", "expression": f"variables.v{at - 1} && variables.v{at - 1}"} for at in range(1, 8)]
    found = said_of(variables=variables, filters=[{"name": "a", "expression": "variables.v7 && !variables.v0"}])
    assert reasons(found) == ["NeverPasses"]


def test_a_policy_that_is_off_or_empty_says_so() -> None:
    [warning] = said_of(mode="Disabled", filters=[_GOOD])
    assert (warning.reason, warning.severity) == (LintCode.DISABLED, "note")
    [warning] = said_of()
    assert (warning.reason, warning.severity) == (LintCode.HAS_NO_EFFECT, "warning")


def test_a_strategy_is_looked_at_only_for_what_is_written_beside_it() -> None:
    strategy = {"name": "a", "nodeReadiness": {"conditions": [{"type": "X"}]}}
    assert said_of(filters=[strategy]) == []
    assert reasons(said_of(filters=[{**strategy, "resolvable": True}])) == ["HasNoEffect"]


def test_the_reasons_are_words_of_an_api() -> None:
    assert len(LintCode) <= 22, "each must be worth a reader's time"
    assert all(reason.value == reason.name.title().replace("_", "") for reason in LintCode)
    assert {reason.value for reason in LintCode} >= {want for _, wants in FILTERS.values() for want in wants}


def test_every_reason_is_explained() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "lint.md").read_text()
    assert [reason.value for reason in LintCode if f"`{reason.value}`" not in page] == []


ROOT = Path(__file__).parents[4]
COUNTING = [
    *("README.md", "docs/reference/rule-language.md", "docs/guide/write-a-strategy.md"),
    *(f"docs/guide/examples/{name}.md" for name in ("canary-pool", "cost-classes", "licence-nodes", "night-batch")),
    *("docs/guide/examples/noisy-neighbours.md", "examples/noisy-neighbours.yaml", "examples/night-batch.yaml"),
    *("examples/cost-classes.yaml", "examples/canary-pool.yaml", "examples/licence-nodes.yaml"),
]


@pytest.mark.parametrize("page", COUNTING)
def test_the_same_is_said_everywhere_of_a_burst_and_a_limit(page: str) -> None:
    text = " ".join((ROOT / page).read_text().replace("#", " ").split())
    assert MEASURED_BURST in text
    assert "eleven or twelve" not in text
