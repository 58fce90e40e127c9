"""Policies that must be rejected, by what is wrong with them, with the message for their owner.

Each is rejected by the API server and offline. Both name the same field; where the API server has its own words for
something, `server` is what it says and `offline` what we say.
"""

from dataclasses import dataclass

from fairlead.strategies import installed
from policies.good import Object, data, device_share, gang, policy


@dataclass(frozen=True, slots=True)
class Bad:
    """A policy that is wrong."""

    policy: Object
    want_field: str
    want_server: str
    want_offline: str = ""
    """"" if it is the same as the API server's."""


A_NAME = "write a name such as gpu-class: lower-case letters, digits and '-', a letter or digit at both ends"
_SOURCES = "give exactly one of nodeAnnotation, nodeLabel, prometheus, nodeMetrics, configMap"
AN_IDENTIFIER = "write a name that expressions can use, such as freeCores: letters and digits, lower-case first"
A_KEY = "write a key such as gpu or example.com/gpu"
A_DURATION = "write a duration such as 90s, 5m or 1h30m, from 1s to 168h"
A_HOLD = "write a duration such as 90s, 5m or 1h30m, from 5s to 2m"
IS_REQUIRED = "Required value"
_TRUE = {"name": "a", "expression": "true"}
_FILTERED_BY = ", ".join(["expression", *(one.name for one in installed() if one.filter), "custom"])
_SCORED_BY = ", ".join(["expression", *(one.name for one in installed() if one.score), "custom"])


def rule(**fields: object) -> Object:
    """Return a policy with a filter of these fields, which is good without them."""
    return policy(filters=[_TRUE | fields])


def score(**fields: object) -> Object:
    """Return a policy with a score of these fields, which is good without them."""
    return policy(scores=[{"name": "a", "expression": "1.0"} | fields])


def shares(*entries: Object) -> Object:
    """Return a policy with these entries of binding.deviceShare."""
    return policy(binding={"deviceShare": [*entries]})


def gangs(*entries: Object, **more: object) -> Object:
    """Return a policy with these entries of binding.gang."""
    return policy(binding={"gang": [*entries]}, **more)


def selector(*expressions: Object, **labels: str) -> Object:
    """Return a policy with this pod selector."""
    return policy(match={"podSelector": {"matchExpressions": [*expressions], "matchLabels": labels}})


def same_name(one: Object, other: Object) -> Object:
    """Return a policy of these two parts."""
    return policy(**one, **other)


def _with_mode(kind: str, mode: object) -> Object:
    """Return a policy with a rule of this kind in this mode."""
    parts: dict[str, Object] = {
        "a filter": {"filters": [_TRUE | {"mode": mode}]},
        "a score": {"scores": [{"name": "a", "expression": "1.0", "mode": mode}]},
        "a protection": {"preemption": {"protect": [_TRUE | {"mode": mode}]}},
        "an annotation": {"binding": {"annotations": [{"key": "a", "expression": "'x'", "mode": mode}]}},
    }
    return policy(**parts[kind])


_FILTERS, _SCORES = {"filters": [_TRUE]}, {"scores": [{"name": "a", "expression": "1.0"}]}
_CONDITIONS, _PROTECT = {"match": {"conditions": [_TRUE]}}, {"preemption": {"protect": [_TRUE]}}
_MODES = 'supported values: "Enforce", "Shadow", "Disabled"'
_RULE_MODES = 'supported values: "Enforce", "Shadow"'
_RULES_WITH_MODE = {
    "a filter": "spec.filters[0]",
    "a score": "spec.scores[0]",
    "a protection": "spec.preemption.protect[0]",
    "an annotation": "spec.binding.annotations[0]",
}
_UNIQUE = "rule names are unique within a policy"

BAD: dict[str, Bad] = {
    # The object as a whole
    "no spec": Bad({k: v for k, v in policy().items() if k != "spec"}, "spec", IS_REQUIRED, "is missing"),
    "a list for a spec": Bad(
        policy() | {"spec": []}, "spec", "must be of type object", "must be a map of fields, not a list"
    ),
    "a field at the top that is not there": Bad(
        policy() | {"speck": {}}, "speck", 'unknown field "speck"', "did you mean spec?"
    ),
    "a field of the spec that is not there": Bad(
        policy(filter=[]), "spec.filter", 'unknown field "spec.filter"', "there is no such field; did you mean filters?"
    ),
    "a name that is too long for a label": Bad(
        policy() | {"metadata": {"name": "a" * 64}},
        "metadata.name",
        "Too long",
        "must have at most 63 characters, not 64",
    ),
    "a name of the object with capitals": Bad(
        policy() | {"metadata": {"name": "Gpu"}},
        "metadata.name",
        "lowercase RFC 1123",
        "lower-case letters, digits, '-' and '.'",
    ),
    "a name of the object with nothing between two dots": Bad(
        policy() | {"metadata": {"name": "gpu..pool"}},
        "metadata.name",
        "lowercase RFC 1123",
        "lower-case letters, digits, '-' and '.'",
    ),
    "a field that is not there, with nothing in it": Bad(
        policy(filter=None), "spec.filter", 'unknown field "spec.filter"', "did you mean filters?"
    ),
    # Of the spec
    "a scheduler name with a dot": Bad(policy(schedulerName="my.scheduler"), "spec.schedulerName", A_NAME),
    "an empty scheduler name": Bad(
        policy(schedulerName=""), "spec.schedulerName", "at least 1 chars long", "must not be empty"
    ),
    "a mode in small letters": Bad(
        policy(mode="shadow"),
        "spec.mode",
        _MODES,
        "'shadow' is not one of Enforce, Shadow, Disabled; did you mean Shadow?",
    ),
    "a mode that there is not": Bad(
        policy(mode="Observe"), "spec.mode", _MODES, "'Observe' is not one of Enforce, Shadow, Disabled"
    ),
    "a mode that YAML read as false": Bad(policy(mode=False), "spec.mode", _MODES, "did you mean Disabled?"),
    **{
        f"{what} of a rule, {kind}": Bad(
            _with_mode(kind, mode), f"{path}.mode", _RULE_MODES, f"is not one of Enforce, Shadow; {cure}"
        )
        for kind, path in _RULES_WITH_MODE.items()
        for what, mode, cure in (
            ("mode Disabled", "Disabled", "remove the rule"),
            ("a mode that YAML read as false", False, "remove the rule"),
            ("a mode in small letters", "shadow", "did you mean Shadow?"),
        )
    },
    "a device share in shadow": Bad(
        policy(mode="Shadow", binding={"deviceShare": [device_share()]}),
        "spec.mode",
        "device shares cannot be in shadow, because what is granted would be wrong: use fairlead simulate, or mode "
        "Disabled",
    ),
    "a priority as a word": Bad(
        policy(priority="high"), "spec.priority", "must be of type integer", "must be a whole number, not 'high'"
    ),
    "a priority beyond its bounds": Bad(
        policy(priority=1_000_001),
        "spec.priority",
        "less than or equal to 1000000",
        "must be at most 1000000, not 1000001",
    ),
    "a failure policy in small letters": Bad(
        policy(failurePolicy="fail"), "spec.failurePolicy", 'supported values: "Fail", "Ignore"', "did you mean Fail?"
    ),
    "binding where the scheduler may go on without us": Bad(
        policy(failurePolicy="Ignore", binding={"annotations": [{"key": "a", "expression": "'x'"}]}),
        "spec.failurePolicy",
        "binding needs failurePolicy Fail: set it to Fail or remove binding",
    ),
    # Match
    "no namespace in a list of namespaces": Bad(
        policy(match={"namespaces": []}), "spec.match.namespaces", "at least 1 items", "must not be empty"
    ),
    "a namespace twice": Bad(
        policy(match={"namespaces": ["ml", "dev", "ml"]}),
        "spec.match.namespaces[2]",
        'Duplicate value: "ml"',
        "'ml' is a duplicate",
    ),
    "a namespace by a pattern": Bad(policy(match={"namespaces": ["ml-*"]}), "spec.match.namespaces[0]", A_NAME),
    "more namespaces than there may be": Bad(
        policy(match={"namespaces": [f"n{i}" for i in range(65)]}),
        "spec.match.namespaces",
        "must have at most 64 items",
    ),
    "a condition without an expression": Bad(
        policy(match={"conditions": [{"name": "a"}]}), "spec.match.conditions[0].expression", IS_REQUIRED, "is missing"
    ),
    "In without values": Bad(
        selector({"key": "a", "operator": "In"}),
        "spec.match.podSelector.matchExpressions[0].values",
        "the operators In and NotIn need at least one value",
    ),
    "NotIn with no values": Bad(
        selector({"key": "a", "operator": "NotIn", "values": []}),
        "spec.match.podSelector.matchExpressions[0].values",
        "the operators In and NotIn need at least one value",
    ),
    "Exists with values": Bad(
        selector({"key": "a", "operator": "Exists", "values": ["x"]}),
        "spec.match.podSelector.matchExpressions[0].values",
        "the operators Exists and DoesNotExist take no values: leave them out",
    ),
    "an operator that node affinity has": Bad(
        selector({"key": "a", "operator": "Gt", "values": ["1"]}),
        "spec.match.podSelector.matchExpressions[0].operator",
        'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
        "'Gt' is not one of In, NotIn, Exists, DoesNotExist",
    ),
    "a label with a space in its key": Bad(
        selector(**{"my tier": "gold"}), "spec.match.podSelector.matchLabels", A_KEY
    ),
    "a label value that no label can have": Bad(
        selector(tier="pure gold"), "spec.match.podSelector.matchLabels[tier]", "write a label's value"
    ),
    "a label value of another script": Bad(
        selector(tier="größe"), "spec.match.podSelector.matchLabels[tier]", "write a label's value"
    ),
    "a label value that is a number": Bad(
        policy(match={"podSelector": {"matchLabels": {"tier": 1}}}),
        "spec.match.podSelector.matchLabels.tier",
        "must be of type string",
        "must be a string, not 1; write it in quotes",
    ),
    # Data
    "a value without a source": Bad(data(), "spec.data[0]", f"{_SOURCES}; found none"),
    "a value from two sources": Bad(
        data(nodeAnnotation={"key": "a"}, nodeLabel={"key": "b"}),
        "spec.data[0]",
        f"{_SOURCES}; found nodeAnnotation nodeLabel",
    ),
    "a source that comes later": Bad(
        data(influxDB={"query": "up"}),
        "spec.data[0].influxDB",
        'unknown field "spec.data[0].influxDB"',
        "the fields here are name, nodeAnnotation, nodeLabel, prometheus, nodeMetrics, configMap, factor, round,"
        " default, defaultFor, maxAge",
    ),
    "a poll that is stale before the next": Bad(
        data(prometheus={"query": "up"}, maxAge="10s"), "spec.data[0].maxAge", "is shorter than the interval"
    ),
    "metrics that are stale before the next": Bad(
        data(nodeMetrics={"resource": "cpu", "interval": "1m"}, maxAge="59s"),
        "spec.data[0].maxAge",
        "is shorter than the interval",
    ),
    "a default for a while without one": Bad(
        data(prometheus={"query": "up"}, defaultFor="5m"), "spec.data[0].defaultFor", "give default, or leave it out"
    ),
    "a default for a while for a label": Bad(
        data(nodeLabel={"key": "a"}, default=1.0, defaultFor="5m"),
        "spec.data[0].defaultFor",
        "give default, or leave it out",
    ),
    "a poll every second": Bad(
        data(prometheus={"query": "up", "interval": "1s"}), "spec.data[0].prometheus.interval", "from 5s to 1h"
    ),
    "a label that Prometheus cannot have": Bad(
        data(prometheus={"query": "up", "nodeLabel": "node-name"}),
        "spec.data[0].prometheus.nodeLabel",
        "write the name of a Prometheus label",
    ),
    "a resource that nobody measures": Bad(
        data(nodeMetrics={"resource": "gpu"}),
        "spec.data[0].nodeMetrics.resource",
        'Unsupported value: "gpu"',
        "cpu",
    ),
    "a key that no ConfigMap can have": Bad(
        data(configMap={"name": "prices", "key": "a b"}), "spec.data[0].configMap.key", "write a key of a ConfigMap"
    ),
    "steps of nothing": Bad(
        data(nodeLabel={"key": "a"}, round=0.0),
        "spec.data[0].round",
        "should be greater than or equal to 1e-09",
        "1e-09",
    ),
    "a value whose name has a dash": Bad(
        policy(data=[{"name": "free-cores", "nodeLabel": {"key": "a"}}]), "spec.data[0].name", AN_IDENTIFIER
    ),
    "a value that is called like a word of CEL": Bad(
        policy(data=[{"name": "in", "nodeLabel": {"key": "a"}}]), "spec.data[0].name", "no word of CEL"
    ),
    "two values of one name": Bad(
        policy(data=[{"name": "a", "nodeLabel": {"key": "a"}}, {"name": "a", "nodeLabel": {"key": "b"}}]),
        "spec.data[1]",
        'Duplicate value: {"name":"a"}',
        "name 'a' is a duplicate",
    ),
    "an annotation key with a space": Bad(
        data(nodeAnnotation={"key": "my load"}), "spec.data[0].nodeAnnotation.key", A_KEY
    ),
    "an annotation without a key": Bad(
        data(nodeAnnotation={}), "spec.data[0].nodeAnnotation.key", IS_REQUIRED, "is missing"
    ),
    "a format that labels do not have": Bad(
        data(nodeLabel={"key": "a", "format": "ValueCommaTime"}),
        "spec.data[0].nodeLabel.format",
        'supported values: "Number", "Quantity"',
        "'ValueCommaTime' is not one of Number, Quantity",
    ),
    "a time in two places": Bad(
        data(nodeAnnotation={"key": "a", "format": "ValueCommaTime", "timeKey": "b"}),
        "spec.data[0].nodeAnnotation.timeKey",
        "the format ValueCommaTime has the time in the value: leave timeKey out",
    ),
    "a time where the value is": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "a"}),
        "spec.data[0].nodeAnnotation.timeKey",
        "one annotation cannot hold value and time: name another, or use the format ValueCommaTime",
    ),
    "a blank query": Bad(
        data(prometheus={"query": " \t"}),
        "spec.data[0].prometheus.query",
        "must not be blank: write PromQL that gives one series per node",
    ),
    "a blank query of times": Bad(
        data(prometheus={"query": "a", "timeQuery": " "}),
        "spec.data[0].prometheus.timeQuery",
        "must not be blank: write PromQL such as timestamp(node_load1), or leave it out",
    ),
    "an age for a label": Bad(
        data(nodeLabel={"key": "a"}, maxAge="60s"),
        "spec.data[0].maxAge",
        "a label does not tell when it was written: leave maxAge out or use a nodeAnnotation",
    ),
    "an age for an annotation without a time": Bad(
        data(nodeAnnotation={"key": "a"}, maxAge="60s"),
        "spec.data[0].maxAge",
        "maxAge needs the time the value was written: give nodeAnnotation.timeKey, or write the value as",
    ),
    "an age in words": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "b"}, maxAge="5 minutes"), "spec.data[0].maxAge", A_DURATION
    ),
    "an age as a number": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "b"}, maxAge=60),
        "spec.data[0].maxAge",
        "must be of type string",
        f"must be a string, not 60; {A_DURATION}",
    ),
    "an age of nothing": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "b"}, maxAge="0s"), "spec.data[0].maxAge", A_DURATION
    ),
    "an age of more than a week": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "b"}, maxAge="168h1s"), "spec.data[0].maxAge", A_DURATION
    ),
    "an age in days": Bad(
        data(nodeAnnotation={"key": "a", "timeKey": "b"}, maxAge="7d"), "spec.data[0].maxAge", A_DURATION
    ),
    "a factor of nothing": Bad(
        data(nodeLabel={"key": "a"}, factor=0),
        "spec.data[0].factor",
        "a factor of 0 makes every value 0: leave factor out to take values as they are",
    ),
    "a default that is out of all proportion": Bad(
        data(nodeLabel={"key": "a"}, default=1e19),
        "spec.data[0].default",
        "less than or equal to 1e+18",
        "at most 1e+18",
    ),
    # Variables
    "a variable whose name has a dash": Bad(
        policy(variables=[{"name": "my-var", "expression": "1"}]), "spec.variables[0].name", AN_IDENTIFIER
    ),
    "a variable that is called like a word of CEL": Bad(
        policy(variables=[{"name": "namespace", "expression": "1"}]), "spec.variables[0].name", "no word of CEL"
    ),
    "an empty expression": Bad(
        policy(variables=[{"name": "a", "expression": ""}]),
        "spec.variables[0].expression",
        "at least 1 chars long",
        "must not be empty",
    ),
    # Filters and scores
    "a map of filters instead of a list": Bad(
        policy(filters={}), "spec.filters", "must be of type array", "must be a list, not a map"
    ),
    "a map of filters with fields instead of a list": Bad(
        policy(filters=_TRUE), "spec.filters", 'unknown field "spec.filters.expression"', "must be a list, not a map"
    ),
    "a filter that is only an expression": Bad(
        policy(filters=["true"]), "spec.filters[0]", "must be of type object", "must be a map of fields, not 'true'"
    ),
    "a filter without a name": Bad(
        policy(filters=[{"expression": "true"}]), "spec.filters[0].name", IS_REQUIRED, "name of the rule"
    ),
    "a filter whose name has a space": Bad(rule(name="gpu class"), "spec.filters[0].name", A_NAME),
    "a filter whose name has capitals": Bad(rule(name="GpuClass"), "spec.filters[0].name", A_NAME),
    "a filter whose name is of another script": Bad(rule(name="größe"), "spec.filters[0].name", A_NAME),
    "a name that is too long": Bad(
        rule(name="n" * 64), "spec.filters[0].name", "Too long", "must have at most 63 characters, not 64"
    ),
    "two filters of one name": Bad(
        policy(filters=[_TRUE, _TRUE]), "spec.filters[1]", 'Duplicate value: {"name":"a"}', "name 'a' is a duplicate"
    ),
    "an expression that is too long": Bad(
        rule(expression="x" * 4097),
        "spec.filters[0].expression",
        "Too long",
        "must have at most 4096 characters, not 4097",
    ),
    "an expression that is a truth and no string": Bad(
        rule(expression=True), "spec.filters[0].expression", "must be of type string", "must be a string, not true"
    ),
    "a reason that is too long": Bad(
        rule(reason="r" * 257), "spec.filters[0].reason", "Too long", "must have at most 256 characters, not 257"
    ),
    "a field that is nearly right": Bad(
        rule(onErr="Pass"), "spec.filters[0].onErr", 'unknown field "spec.filters[0].onErr"', "did you mean onError?"
    ),
    "a field as Python would spell it": Bad(
        rule(on_error="Pass"),
        "spec.filters[0].on_error",
        'unknown field "spec.filters[0].on_error"',
        "did you mean onError?",
    ),
    "a filter with a weight": Bad(
        rule(weight=2), "spec.filters[0].weight", 'unknown field "spec.filters[0].weight"', "there is no such field"
    ),
    "what to do about errors, of another kind of rule": Bad(
        rule(onError="Omit"),
        "spec.filters[0].onError",
        'supported values: "Reject", "Pass"',
        "is not one of Reject, Pass",
    ),
    "a truth in quotes": Bad(
        rule(resolvable="true"),
        "spec.filters[0].resolvable",
        "must be of type boolean",
        "must be true or false, not 'true'",
    ),
    "a filter with nothing that decides": Bad(
        policy(filters=[{"name": "a"}]),
        "spec.filters[0]",
        f"give exactly one of {_FILTERED_BY}; found none",
    ),
    "a filter with two things that decide": Bad(
        rule(nodeReadiness={"conditions": [{"type": "NetworkReady"}]}),
        "spec.filters[0]",
        f"give exactly one of {_FILTERED_BY}; found expression nodeReadiness",
    ),
    "a score with nothing that decides": Bad(
        policy(scores=[{"name": "a", "weight": 2}]),
        "spec.scores[0]",
        f"give exactly one of {_SCORED_BY}; found none",
    ),
    "a score with two strategies that decide": Bad(
        policy(scores=[{"name": "a", "allocation": {"objective": "Pack"}, "hotSpot": {}}]),
        "spec.scores[0]",
        f"give exactly one of {_SCORED_BY}; found allocation hotSpot",
    ),
    "a custom strategy beside an expression": Bad(
        rule(custom={"name": "spread"}),
        "spec.filters[0]",
        f"give exactly one of {_FILTERED_BY}; found expression custom",
    ),
    "a custom strategy without a name": Bad(
        policy(filters=[{"name": "a", "custom": {"params": {"max": 1}}}]),
        "spec.filters[0].custom.name",
        IS_REQUIRED,
        "is missing; name of the strategy",
    ),
    "a custom strategy with a dash in its name": Bad(
        policy(scores=[{"name": "a", "custom": {"name": "my-spread"}}]),
        "spec.scores[0].custom.name",
        "write the name of a strategy, such as spread or nodeReadiness",
    ),
    "parameters of a custom strategy beside params": Bad(
        policy(filters=[{"name": "a", "custom": {"name": "spread", "max": 1}}]),
        "spec.filters[0].custom.max",
        'unknown field "spec.filters[0].custom.max"',
        "the fields here are name, params",
    ),
    "parameters of a custom strategy in a list": Bad(
        policy(filters=[{"name": "a", "custom": {"name": "spread", "params": [1]}}]),
        "spec.filters[0].custom.params",
        "must be of type object",
        "must be a map, not a list",
    ),
    "a score by a strategy that only filters": Bad(
        policy(scores=[{"name": "a", "nodeReadiness": {"conditions": [{"type": "NetworkReady"}]}}]),
        "spec.scores[0].nodeReadiness",
        'unknown field "spec.scores[0].nodeReadiness"',
        "there is no such field",
    ),
    "a topology without the level that it requires": Bad(
        policy(filters=[{"name": "a", "topology": {"levels": ["example.org/rack"], "require": "example.org/row"}}]),
        "spec.filters[0].topology.require",
        "require is one of the levels: add it to levels, or name another one",
    ),
    "a topology that cannot bind": Bad(
        policy(
            filters=[{"name": "a", "topology": {"levels": ["example.org/rack"], "require": "example.org/rack"}}],
            failurePolicy="Ignore",
        ),
        "spec.failurePolicy",
        "a filter topology needs failurePolicy Fail, as it binds pods: set it to Fail or remove the filter",
    ),
    "a strategy with nothing to wait for": Bad(
        policy(filters=[{"name": "a", "nodeReadiness": {}}]),
        "spec.filters[0].nodeReadiness",
        "give at least one item in",
    ),
    "a strategy that waits too long": Bad(
        policy(filters=[{"name": "a", "nodeReadiness": {"holdOff": "2h", "conditions": [{"type": "NetworkReady"}]}}]),
        "spec.filters[0].nodeReadiness.holdOff",
        "write a duration such as 90s, 5m or 1h30m, from 0s to 1h",
    ),
    "a balance of one resource": Bad(
        policy(scores=[{"name": "a", "allocation": {"objective": "Balance", "resources": [{"name": "cpu"}]}}]),
        "spec.scores[0].allocation.resources",
        "Balance needs at least two resources",
    ),
    "a resource that counts twice": Bad(
        policy(scores=[{"name": "a", "pigeon": {"resources": ["cpu", "memory", "cpu"]}}]),
        "spec.scores[0].pigeon.resources[2]",
        'Duplicate value: "cpu"',
        "'cpu' is a duplicate",
    ),
    "a resource with two floors": Bad(
        policy(scores=[{"name": "a", "pigeon": {"floors": [{"name": "cpu", "quantity": "1"}] * 2}}]),
        "spec.scores[0].pigeon.floors[1]",
        'Duplicate value: {"name":"cpu"}',
        "name 'cpu' is a duplicate",
    ),
    "more resources than count": Bad(
        policy(scores=[{"name": "a", "pigeon": {"resources": [f"r{i}" for i in range(6)]}}]),
        "spec.scores[0].pigeon.resources",
        "at most 5 items",
        "must have at most 5 items",
    ),
    "a floor of a resource that is not listed": Bad(
        policy(
            scores=[{"name": "a", "pigeon": {"resources": ["cpu"], "floors": [{"name": "memory", "quantity": "1"}]}}]
        ),
        "spec.scores[0].pigeon.floors",
        "a floor is of a resource that counts: add its name to resources, or leave the floor out",
    ),
    "a floor of a resource that is not listed by default": Bad(
        policy(scores=[{"name": "a", "pigeon": {"floors": [{"name": "pods", "quantity": "1"}]}}]),
        "spec.scores[0].pigeon.floors",
        "a floor is of a resource that counts: add its name to resources, or leave the floor out",
    ),
    "more pods than are sampled": Bad(
        policy(scores=[{"name": "a", "pigeon": {"samples": 20, "minSamples": 21}}]),
        "spec.scores[0].pigeon.minSamples",
        "minSamples is at most samples, of which no more are known",
    ),
    "more pods than are sampled by default": Bad(
        policy(scores=[{"name": "a", "pigeon": {"minSamples": 101}}]),
        "spec.scores[0].pigeon.minSamples",
        "minSamples is at most samples, of which no more are known",
    ),
    "more samples than there may be": Bad(
        policy(scores=[{"name": "a", "pigeon": {"samples": 4001}}]),
        "spec.scores[0].pigeon.samples",
        "less than or equal to 4000",
        "must be at most 4000",
    ),
    "a range that goes down": Bad(
        policy(
            scores=[{"name": "a", "telemetry": {"value": "x", "prefer": "Lowest", "range": {"from": 80, "to": 30}}}],
        ),
        "spec.scores[0].telemetry.range",
        "from must be less than to",
    ),
    "the parameters of a filter in a score": Bad(
        policy(scores=[{"name": "a", "hotSpot": {"windows": [{"within": "30s", "limit": 10}]}}]),
        "spec.scores[0].hotSpot.windows[0].limit",
        'unknown field "spec.scores[0].hotSpot.windows[0].limit"',
        "there is no such field",
    ),
    "a selector of a strategy with a bad operator": Bad(
        policy(
            filters=[
                {
                    "name": "a",
                    "nodeReadiness": {
                        "pods": [
                            {
                                "name": "cache",
                                "namespace": "kube-system",
                                "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                            }
                        ]
                    },
                }
            ]
        ),
        "spec.filters[0].nodeReadiness.pods[0].selector.matchExpressions[0].values",
        "the operators In and NotIn need at least one value",
    ),
    "more filters than there may be": Bad(
        policy(filters=[{"name": f"f{i}", "expression": "true"} for i in range(33)]),
        "spec.filters",
        "must have at most 32 items",
    ),
    "a weight of nothing": Bad(
        score(weight=0), "spec.scores[0].weight", "greater than or equal to 1", "must be at least 1, not 0"
    ),
    "a weight that is too heavy": Bad(
        score(weight=1001), "spec.scores[0].weight", "less than or equal to 1000", "must be at most 1000, not 1001"
    ),
    "half a weight": Bad(
        score(weight=0.5), "spec.scores[0].weight", "must be of type integer", "must be a whole number, not 0.5"
    ),
    "a weight in quotes": Bad(
        score(weight="2"), "spec.scores[0].weight", "must be of type integer", "must be a whole number, not '2'"
    ),
    "a way of normalizing in small letters": Bad(
        score(normalize="minmax"),
        "spec.scores[0].normalize",
        'supported values: "None", "MinMax", "Rank"',
        "did you mean MinMax?",
    ),
    # One name for two rules
    "a score with the name of a filter": Bad(same_name(_FILTERS, _SCORES), "spec.scores", _UNIQUE),
    "a score with the name of a condition": Bad(same_name(_CONDITIONS, _SCORES), "spec.scores", _UNIQUE),
    "a filter with the name of a condition": Bad(same_name(_CONDITIONS, _FILTERS), "spec.filters", _UNIQUE),
    "a protection with the name of a filter": Bad(same_name(_FILTERS, _PROTECT), "spec.preemption.protect", _UNIQUE),
    "a protection with the name of a score": Bad(same_name(_SCORES, _PROTECT), "spec.preemption.protect", _UNIQUE),
    "a protection with the name of a condition": Bad(
        same_name(_CONDITIONS, _PROTECT), "spec.preemption.protect", _UNIQUE
    ),
    # Preemption and binding
    "a protection without an expression": Bad(
        policy(preemption={"protect": [{"name": "a"}]}),
        "spec.preemption.protect[0].expression",
        IS_REQUIRED,
        "is missing",
    ),
    "one annotation twice": Bad(
        policy(binding={"annotations": [{"key": "a", "expression": "'x'"}, {"key": "a", "expression": "'y'"}]}),
        "spec.binding.annotations[1]",
        'Duplicate value: {"key":"a"}',
        "key 'a' is a duplicate",
    ),
    "an annotation whose key ends in a slash": Bad(
        policy(binding={"annotations": [{"key": "fairlead.dev/", "expression": "'x'"}]}),
        "spec.binding.annotations[0].key",
        A_KEY,
    ),
    "what to do about errors of an annotation, of another kind of rule": Bad(
        policy(binding={"annotations": [{"key": "a", "expression": "'x'", "onError": "Pass"}]}),
        "spec.binding.annotations[0].onError",
        'supported values: "Omit", "Reject"',
        "is not one of Omit, Reject",
    ),
    "an annotation that only grants write": Bad(
        policy(binding={"annotations": [{"key": "fairlead.dev/devices.gpu", "expression": "'0'"}]}),
        "spec.binding.annotations[0].key",
        "only grants write annotations that begin like this: choose another key",
    ),
    "an annotation of the gpushare plugin": Bad(
        policy(binding={"annotations": [{"key": "ALIYUN_COM_GPU_MEM_IDX", "expression": "'0'"}]}),
        "spec.binding.annotations[0].key",
        "only grants write annotations that begin like this: choose another key",
    ),
    "several cards for a plugin that gives one": Bad(
        shares(device_share(record="Gpushare", cards="2")),
        "spec.binding.deviceShare[0].cards",
        "Gpushare gives a pod one device: leave cards out, or record Fairlead",
    ),
    "several shares for a plugin that knows one": Bad(
        shares(device_share(record="Gpushare", shares=[{"resource": "a.io/b"}, {"resource": "a.io/c"}])),
        "spec.binding.deviceShare[0].shares",
        "Gpushare has one share: list one resource, or record Fairlead",
    ),
    "unequal devices for a plugin that knows equal ones": Bad(
        shares(device_share(record="Gpushare", layout={"annotation": "devices"})),
        "spec.binding.deviceShare[0].layout",
        "Gpushare has equal devices: give layout.count, or record Fairlead",
    ),
    "a share that is the number of devices": Bad(
        shares(device_share(layout={"count": "a.io/b"}, shares=[{"resource": "a.io/c"}, {"resource": "a.io/b"}])),
        "spec.binding.deviceShare[0].layout",
        "the number of devices is no share of one: name the resource that pods share",
    ),
    "unhealthy devices in the layout": Bad(
        shares(device_share(layout={"annotation": "a.io/d"}, unhealthy={"annotation": "a.io/d"})),
        "spec.binding.deviceShare[0].unhealthy",
        "the layout tells by healthy which devices are well: leave unhealthy out",
    ),
    "a layout from nowhere": Bad(
        shares(device_share(layout={})),
        "spec.binding.deviceShare[0].layout",
        "give exactly one of count, annotation; found none",
    ),
    "a resource that no device plugin offers": Bad(
        shares(device_share(shares=[{"resource": "memory"}])),
        "spec.binding.deviceShare[0].shares[0].resource",
        "write an extended resource with its domain, such as example.org/gpu-mem",
    ),
    "a resource that two entries share": Bad(
        shares(device_share(), device_share(name="again")),
        "spec.binding.deviceShare",
        "a resource may be shared by one entry only: remove it from the others",
    ),
    "a filter that passes nodes whose devices are not known": Bad(
        policy(
            binding={"deviceShare": [device_share()]},
            filters=[{"name": "room", "deviceShare": {"name": "gpu"}, "onError": "Pass"}],
        ),
        "spec.filters[0].onError",
        "deviceShare rejects nodes whose devices are not known, because they take no pod: leave onError out",
    ),
    "two entries that gpushare's plugin reads": Bad(
        shares(
            device_share(record="Gpushare"),
            device_share(name="other", record="Gpushare", shares=[{"resource": "a.io/other"}]),
        ),
        "spec.binding.deviceShare",
        "gpushare's annotations have room for one grant: record Fairlead in the other entries",
    ),
    "a device share with the name of a version": Bad(
        shares(device_share(name="v")),
        "spec.binding.deviceShare[0].name",
        "v is the version in the annotation fairlead.dev/devices: choose another name",
    ),
    "more device shares than there may be": Bad(
        shares(*(device_share(name=f"g{at}", shares=[{"resource": f"a.io/g{at}"}]) for at in range(9))),
        "spec.binding.deviceShare",
        "must have at most 8 items",
    ),
    "gangs where the scheduler may go on without us": Bad(
        gangs(gang(), failurePolicy="Ignore"),
        "spec.failurePolicy",
        "binding needs failurePolicy Fail: set it to Fail or remove binding",
    ),
    "a gang with the name of a device share": Bad(
        policy(binding={"deviceShare": [device_share()], "gang": [gang(), gang(name="gpu")]}),
        "spec.binding.gang",
        "both bring a filter of their name: give the gang another name than the deviceShare has",
    ),
    "two gangs of one name": Bad(
        gangs(gang(), gang(group="'a'")),
        "spec.binding.gang[1]",
        'Duplicate value: {"name":"whole-job"}',
        "name 'whole-job' is a duplicate; list each only once",
    ),
    "more gangs than there may be": Bad(
        gangs(*(gang(name=f"g{at}") for at in range(5))), "spec.binding.gang", "must have at most 4 items"
    ),
    "a gang without a group": Bad(
        gangs({"name": "a", "size": "4"}), "spec.binding.gang[0].group", IS_REQUIRED, "is missing"
    ),
    "a gang without a size": Bad(
        gangs({"name": "a", "group": "'a'"}), "spec.binding.gang[0].size", IS_REQUIRED, "is missing"
    ),
    "a group that is empty": Bad(
        gangs(gang(group="")),
        "spec.binding.gang[0].group",
        "at least 1 chars long",
        "must not be empty",
    ),
    "a size that is a number": Bad(
        gangs(gang(size=4)), "spec.binding.gang[0].size", "must be of type string", "must be a string"
    ),
    "a name of a gang that is too long": Bad(
        gangs(gang(name="g" * 64)),
        "spec.binding.gang[0].name",
        "Too long",
        "must have at most 63 characters, not 64",
    ),
    "a name of a gang that is none": Bad(gangs(gang(name="Whole_Job")), "spec.binding.gang[0].name", A_NAME),
    "a group that is held too short": Bad(gangs(gang(holdFor="4s")), "spec.binding.gang[0].holdFor", A_HOLD),
    "a group that is held too long": Bad(gangs(gang(holdFor="2m1s")), "spec.binding.gang[0].holdFor", A_HOLD),
    "a group that is held for a number": Bad(gangs(gang(holdFor="30")), "spec.binding.gang[0].holdFor", A_HOLD),
}
