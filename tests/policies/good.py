"""Policies that must be accepted, by the API server and offline alike, keyed by what is special about them."""

from typing import Any

import yaml

Object = dict[str, Any]


def policy(**spec: object) -> Object:
    """Return a policy with this spec."""
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "some"},
        "spec": spec,
    }


def data(**entry: object) -> Object:
    """Return a policy with this one entry of data."""
    return policy(data=[{"name": "load"} | entry])


EVERYTHING: Object = yaml.safe_load("""
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: gpu-pool}
spec:
  schedulerName: fairlead
  mode: Enforce
  priority: 0
  match:
    namespaces: [ml]
    namespaceSelector: {matchLabels: {team: ml}}
    podSelector: {matchLabels: {tier: gold}}
    conditions: [{name: important, expression: pod.spec.priority > 100}]
  data:
  - name: load
    nodeAnnotation: {key: example.com/load, timeKey: example.com/load-time}
    maxAge: 60s
  variables:
  - {name: wants, expression: "pod.metadata.labels[?'gpu'].orValue('any')"}
  filters:
  - name: gpu-class
    expression: variables.wants == 'any' || node.metadata.labels[?'gpu'].orValue('') == variables.wants
    reason: wrong GPU class
    resolvable: false
    onError: Reject
  scores:
  - name: cool-first
    weight: 2
    expression: 100.0 * (1.0 - data.load)
    normalize: None
  preemption:
    protect: [{name: keepers, expression: "victim.metadata.labels[?'never-evict'].orValue('') == 'true'"}]
  binding:
    annotations: [{key: fairlead.dev/class, expression: variables.wants, onError: Omit}]
  failurePolicy: Fail
""")

READINESS: Object = yaml.safe_load("""
daemonSets:
- {namespace: kube-system, name: cilium}
- {namespace: kube-system, name: node-local-dns, whenAbsent: Pass}
pods:
- {name: registry-facade, namespace: gitpod, selector: {matchLabels: {component: registry-facade}}, minReady: 1}
conditions: [{type: NetworkReady, status: "True"}]
labels: [{key: example.org/images-warm, value: "true"}]
holdOff: 20s
choose: {podAnnotation: example.org/needs}
""")

COUNTED: Object = {
    "selector": {"matchLabels": {"tier": "batch"}},
    "namespaces": ["ml"],
    "resource": "cpu",
}


def device_share(**fields: object) -> Object:
    """Return an entry of binding.deviceShare with these fields, which is good without them."""
    shares = [{"resource": "aliyun.com/gpu-mem"}]
    return {"name": "gpu", "shares": shares, "layout": {"count": "aliyun.com/gpu-count"}} | fields


def gang(**fields: object) -> Object:
    """Return an entry of binding.gang with these fields, which is good without them."""
    return {"name": "whole-job", "group": "pod.metadata.labels[?'job-name'].orValue('')", "size": "4"} | fields


GOOD: dict[str, Object] = {
    "everything that a policy can say": EVERYTHING,
    "nothing at all": policy(),
    "switched off": policy(mode="Disabled", filters=[{"name": "a", "expression": "true"}]),
    "in shadow": policy(mode="Shadow", filters=[{"name": "a", "expression": "true", "mode": "Enforce"}]),
    "rules in shadow": policy(
        filters=[{"name": "a", "expression": "true", "mode": "Shadow"}],
        scores=[{"name": "b", "expression": "1.0", "mode": "Shadow"}],
        preemption={"protect": [{"name": "c", "expression": "true", "mode": "Shadow"}]},
        binding={"annotations": [{"key": "d", "expression": "'x'", "mode": "Shadow"}], "deviceShare": [device_share()]},
    ),
    "empty parts": policy(match={}, filters=[], scores=[], data=[], variables=[], preemption={}, binding={}),
    "nulls, which mean nothing": policy(
        match=None, filters=[{"name": "a", "expression": "true", "reason": None}], failurePolicy=None
    ),
    "nulls in a map, which mean nothing either": policy(match={"podSelector": {"matchLabels": {"a": None, "b": "c"}}}),
    "binding where the failure policy is not written": policy(
        binding={"annotations": [{"key": "fairlead.dev/a", "expression": "'x'", "onError": "Reject"}]}
    ),
    "no binding where the scheduler may go on without us": policy(
        failurePolicy="Ignore", filters=[{"name": "a", "expression": "true", "onError": "Pass", "resolvable": True}]
    ),
    "the longest of names, reasons and expressions": policy(
        schedulerName="s" * 63,
        filters=[{"name": "n" * 63, "expression": "x" * 4096, "reason": "r" * 256}],
        variables=[{"name": "v" * 63, "expression": "x" * 4096}],
    ),
    "as many rules as there may be": policy(
        filters=[{"name": f"f{i}", "expression": "x" * 4096} for i in range(32)],
        scores=[{"name": f"s{i}", "expression": "1.0"} for i in range(32)],
        variables=[{"name": f"v{i}", "expression": "1.0"} for i in range(32)],
        match={"conditions": [{"name": f"c{i}", "expression": "true"} for i in range(16)]},
        preemption={"protect": [{"name": f"p{i}", "expression": "true"} for i in range(16)]},
    ),
    "numbers at their bounds": policy(
        priority=-1_000_000,
        scores=[{"name": "a", "weight": 1, "expression": "1.0"}, {"name": "b", "weight": 1000, "expression": "1.0"}],
        data=[{"name": "a", "nodeLabel": {"key": "a"}, "factor": -1e18, "default": 1e18}],
    ),
    "a whole number written with a point": policy(
        priority=3.0, scores=[{"name": "a", "weight": 2.0, "expression": "1.0"}]
    ),
    "a value with its time after a comma": data(
        nodeAnnotation={"key": "example.com/load", "format": "ValueCommaTime"}, maxAge="1h30m"
    ),
    "a value that may be a week old": data(nodeAnnotation={"key": "load", "timeKey": "time"}, maxAge="168h"),
    "a value from a label": data(nodeLabel={"key": "example.com/rack-watts", "format": "Quantity"}, factor=0.001),
    "selectors with every operator": policy(
        match={
            "podSelector": {
                "matchLabels": {"example.com/tier": "gold", "empty": ""},
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", ""]},
                    {"key": "a", "operator": "NotIn", "values": ["y"]},
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "DoesNotExist", "values": []},
                ],
            },
            "namespaceSelector": {},
        }
    ),
    "one name for a rule, a variable and an entry of data": policy(
        filters=[{"name": "load", "expression": "data.load < variables.load"}],
        variables=[{"name": "load", "expression": "1.0"}],
        data=[{"name": "load", "nodeLabel": {"key": "load"}}],
    ),
    "parts that a policy's owner might order otherwise": policy(
        scores=[{"expression": "1.0", "name": "b"}], filters=[{"expression": "true", "name": "a"}]
    ),
    "a strategy with all its parameters": policy(filters=[{"name": "daemons-ready", "nodeReadiness": READINESS}]),
    "a group in one rack": policy(
        filters=[
            {
                "name": "one-rack",
                "topology": {
                    "levels": ["example.org/block", "example.org/rack"],
                    "require": "example.org/rack",
                    "group": "pod.metadata.labels[?'job-name'].orValue('')",
                    "size": "int(pod.metadata.annotations[?'example.org/size'].orValue('1'))",
                },
            }
        ]
    ),
    "members of a group near each other": policy(
        scores=[{"name": "near", "topology": {"levels": ["example.org/rack"], "size": "8"}}],
    ),
    "strategies that score, with as little as they need": policy(
        data=[{"name": "heat", "nodeLabel": {"key": "heat"}}],
        scores=[
            {"name": "a", "allocation": {"objective": "Balance"}},
            {"name": "b", "congestion": {"value": "heat"}},
            {"name": "c", "hotSpot": {}},
            {"name": "d", "telemetry": {"value": "heat", "prefer": "Highest"}},
            {"name": "e", "pigeon": {}},
        ],
    ),
    "strategies with all their parameters": policy(
        data=[{"name": "heat", "nodeLabel": {"key": "heat"}}],
        filters=[
            {"name": "a", "hotSpot": {"windows": [{"within": "30s", "limit": 10}], **COUNTED}},
            {
                "name": "b",
                "telemetry": {
                    "rejectWhen": "AllOf",
                    "rules": [{"value": "heat", "operator": "GreaterThan", "target": 80.5}],
                },
            },
        ],
        scores=[
            {"name": "c", "allocation": {"objective": "Pack", "resources": [{"name": "nvidia.com/gpu", "weight": 5}]}},
            {"name": "d", "congestion": {"value": "heat", "max": 0.5}},
            {"name": "e", "hotSpot": {"windows": [{"within": "5m", "count": 2.5, "points": 10}], **COUNTED}},
            {
                "name": "f",
                "telemetry": {"value": "heat", "prefer": "Lowest", "range": {"from": -10, "to": 80.5}},
            },
            {
                "name": "g",
                "pigeon": {
                    "objective": "Consolidate",
                    "resources": ["memory", "cpu", "pods", "ephemeral-storage", "nvidia.com/gpu"],
                    "system": {"matchLabels": {"pool": "batch"}},
                    "floors": [{"name": "cpu", "quantity": "10m"}, {"name": "memory", "quantity": "16Mi"}],
                    "samples": 4000,
                    "minSamples": 1000,
                },
            },
        ],
    ),
    "device shares with as little and with as much as they can say": policy(
        binding={
            "deviceShare": [
                device_share(),
                device_share(name="g" * 40, shares=[{"resource": "a.io/b"}], record="Gpushare", split="Each"),
                {
                    "name": "fpga",
                    "shares": [{"resource": f"example.org/part-{at}"} for at in range(4)],
                    "layout": {"annotation": "example.org/devices"},
                    "cards": "int(pod.metadata.annotations[?'example.org/cards'].orValue('1'))",
                    "split": "Even",
                    "unhealthy": {"configMap": {"namespace": "fpga", "prefix": "sick-", "key": "ids"}},
                    "choose": "WorstFit",
                    "record": "Fairlead",
                },
                device_share(name="npu", shares=[{"resource": "c.io/d"}], unhealthy={"annotation": "sick"}),
            ]
        },
        filters=[{"name": "room", "deviceShare": {"name": "gpu"}, "resolvable": True}],
        scores=[{"name": "fill", "deviceShare": {"name": "gpu", "objective": "Pack"}}],
    ),
    "gangs with as little and with as much as they can say": policy(
        binding={
            "deviceShare": [device_share()],
            "gang": [
                gang(),
                gang(name="g" * 63, group="x" * 4096, size="x" * 4096, holdFor="5s"),
                gang(name="two-minutes", holdFor="2m"),
                gang(name="v", size="int(pod.metadata.annotations[?'example.org/size'].orValue('1'))", holdFor="1m60s"),
            ],
        }
    ),
    "strategies that no CRD knows": policy(
        filters=[{"name": "a", "custom": {"name": "spread", "params": {"max": 2.5, "of": [{"key": "a"}, "b", True]}}}],
        scores=[{"name": "b", "custom": {"name": "spread"}}, {"name": "c", "custom": {"name": "x" * 63, "params": {}}}],
    ),
    "a status that somebody sent along": policy() | {"status": {"observedGeneration": 3, "conditions": []}},
}
