"""Whatever comes in whatever order: what is kept equals what is computed from nothing, and changes tell all of it."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fairlead.cel.values.structs import from_json
from fairlead.mirror.resource_requests import COUNTED, allocatable_of, as_amounts, requests_of_pod
from fairlead.mirror.watched_node import WatchedNode
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import placed_pod
from support.mirror import CREATED_NS, FedMirror, Object, node, plain, pod, written
from support.policy import pod as asking
from support.policy import policy
from support.policy.asking import filtered, scored

NEVER = 1 << 62
SECOND = 10**9
NODES = ["n1", "n2", "n3"]
PODS = [f"p{at}" for at in range(6)]
POLICIES = [
    policy(
        "amounts",
        filters={
            "room": "free['cpu'] >= 2.5 && requested['pods'] < 3.0",
            "gpus": {"expression": "free['example.com/gpu'] > 0.0", "onError": "Pass"},
            "has": "allocatable['cpu'] > 4.0",
        },
        scores={"packed": "requested['cpu'] + double(size(requested))"},
    ),
    policy(
        "pods",
        filters={
            "web": "!pods.exists(p, p.metadata.labels[?'app'].orValue('') == 'web' && p.status.phase == 'Running')",
            "kept": "pods.all(p, p.metadata.annotations[?'keep'].orValue('') != 'alone')",
            "agent": {
                "nodeReadiness": {
                    "daemonSets": [{"namespace": "ml", "name": "agent"}],
                    "conditions": [{"type": "Ready"}],
                    "labels": [{"key": "gpu"}],
                    "annotations": [{"key": "warm", "value": "yes"}],
                    "holdOff": "20s",
                }
            },
        },
        scores={"urgent": "double(pods.filter(p, p.spec.priority == 2).size())"},
    ),
    policy(
        "node",
        data=[{"name": "load", "nodeAnnotation": {"key": "load"}, "default": 0.5}],
        filters={
            "label": "node.metadata.labels[?'gpu'].orValue('') != 'b'",
            "beats": "node.status.conditions.all(c, c.lastHeartbeatTime < timestamp('2026-05-01T10:03:00Z'))",
            "open": "!node.spec.unschedulable && node.spec.taints.size() == 0",
            "idle": "data.load < 0.8",
        },
        scores={"version": "double(int(node.metadata.resourceVersion))"},
    ),
]
ASKING = [asking("x1"), asking("x2", labels={"app": "web"})]
AGENT = [{"kind": "DaemonSet", "name": "agent", "controller": True}]

labels = st.dictionaries(st.sampled_from(["gpu", "app"]), st.sampled_from(["a", "b", "web"]))
annotations = st.dictionaries(st.sampled_from(["load", "warm", "keep"]), st.sampled_from(["0.9", "yes", "alone"]))
amounts = st.sampled_from(["100m", "1", "2500m", "0"])
conditions = st.builds(
    lambda status, late, beat: [
        {
            "type": "Ready",
            "status": status,
            "lastTransitionTime": f"2027-01-15T07:59:{10 if late else 50}Z",
            "lastHeartbeatTime": f"2026-05-01T10:0{beat}:00Z",
        }
    ],
    st.sampled_from(["True", "False"]),
    st.booleans(),
    st.integers(0, 5),
)
nodes = st.fixed_dictionaries(
    {},
    optional={
        "labels": labels,
        "annotations": annotations,
        "allocatable": st.dictionaries(
            st.sampled_from(["cpu", "example.com/gpu", "pods"]), st.sampled_from(["8", "2", "0"])
        ),
        "conditions": conditions,
        "unschedulable": st.booleans(),
        "taints": st.sampled_from([[], [{"key": "a", "effect": "NoSchedule"}]]),
        "uid": st.sampled_from(["first", "second"]),
    },
)
containers = st.lists(
    st.builds(
        lambda name, cpu, memory, policy: {
            "name": name,
            "resources": {"requests": {"cpu": cpu, **memory}},
            **({"restartPolicy": "Always"} if policy else {}),
        },
        st.sampled_from(["a", "b"]),
        amounts,
        st.sampled_from([{}, {"memory": "128Mi"}, {"example.com/gpu": "1"}]),
        st.booleans(),
    ),
    max_size=2,
    unique_by=lambda container: str(container["name"]),
)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "containerStatuses": st.builds(
            lambda name, cpu, actual: [
                {"name": name, "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": actual}}}
            ],
            st.sampled_from(["main", "a"]),
            amounts,
            amounts,
        ),
        "conditions": st.sampled_from(
            [
                [],
                [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T07:59:40Z"}],
                [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            ]
        ),
    },
)
pods = st.fixed_dictionaries(
    {"on": st.sampled_from(NODES)},
    optional={
        "cpu": amounts,
        "phase": st.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
        "labels": labels,
        "annotations": annotations,
        "priority": st.integers(0, 2),
        "initContainers": containers,
        "overhead": st.sampled_from([{}, {"cpu": "250m"}]),
        "resources": st.sampled_from([{}, {"requests": {"cpu": "3"}}]),
        "status": statuses,
        "uid": st.sampled_from(["first", "second"]),
    },
)


class KeptEqualsComputed(RuleBasedStateMachine):
    """Every step changes what there is and tells the mirror of it."""

    @initialize()
    def start(self) -> None:
        self.told = FedMirror(annotations=["keep"])
        self.evaluator = Evaluator(policy_set(POLICIES), self.told.mirror.nodes)
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.since: dict[str, dict[Any, int]] = {}
        self.version = 0

    @rule(name=st.sampled_from(NODES), fields=nodes)
    def node_comes_or_changes(self, name: str, fields: dict[str, Any]) -> None:
        self.version += 1
        before, self.nodes[name] = self.nodes.get(name), node(name, version=self.version, **fields)
        self._stamp(name, before, self.nodes[name])
        self._tell_node(name)

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.told.node_gone(name)

    @rule(name=st.sampled_from(PODS), fields=pods, agent=st.booleans())
    def pod_comes_or_changes(self, name: str, fields: dict[str, Any], agent: bool) -> None:
        self.version += 1
        self.pods[name] = pod(name, version=self.version, **fields)
        if agent:
            self.pods[name]["metadata"]["ownerReferences"] = AGENT
        self._tell_pod(name)

    @rule(name=st.sampled_from(PODS), cpu=amounts)
    def pod_is_resized(self, name: str, cpu: str) -> None:
        if name in self.pods:
            self.pods[name]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
            self._tell_pod(name)

    @rule(name=st.sampled_from(PODS))
    def pod_goes(self, name: str) -> None:
        self.pods.pop(name, None)
        self.told.pod_gone(name)

    @rule()
    def all_is_listed_again(self) -> None:
        before = self.told.mirror.nodes.head
        for name in self.nodes:
            self._tell_node(name)
        for name in self.pods:
            self._tell_pod(name)
        assert self.told.mirror.nodes.head == before

    @rule(seconds=st.sampled_from([1, 15, 30]))
    def time_passes(self, seconds: int) -> None:
        self.told.now += seconds * SECOND

    @rule()
    def is_asked(self) -> None:
        fresh = Evaluator(policy_set(POLICIES), self._computed())
        for one in ASKING:
            answers = []
            for asked in (self.evaluator, fresh):
                found = filtered(asked, one, NODES, now=self.told.now)
                scores = scored(asked, one, NODES, now=self.told.now)
                answers.append((*found.passed, *found.unknown, dict(found.rejected), [str(score) for score in scores]))
            assert answers[0] == answers[1]

    @invariant()
    def what_is_kept_equals_what_is_computed(self) -> None:
        kept, computed = self.told.mirror.nodes, self._computed()
        assert kept.slots.keys() == computed.slots.keys()
        for name in computed.slots:
            one, other = kept.view_of(name), computed.view_of(name)
            assert one is not None
            assert other is not None
            assert plain(one.node) == plain(other.node)
            assert (one.allocatable, one.requested) == (other.allocatable, other.requested)
            assert sorted(one.pods, key=_name) == sorted(other.pods, key=_name)

    def teardown(self) -> None:
        self.is_asked()

    def _tell_node(self, name: str) -> None:
        self.told.mirror.node_sink.put(WatchedNode(written(self.nodes[name])))

    def _tell_pod(self, name: str) -> None:
        self.told.mirror.placed_sink.put(self.told.placed(written(self.pods[name])))

    def _stamp(self, name: str, before: Object | None, after: Object) -> None:
        """What a rule may ask is written down, each moment for itself."""
        stamps = self.since.setdefault(name, {})
        anew = before is None or before["metadata"]["uid"] != after["metadata"]["uid"]
        if anew:
            stamps.clear()
        now = {}
        for where in ("labels", "annotations"):
            for key, value in after["metadata"][where].items():
                for asked in ((where, key, None), (where, key, value)):
                    now[asked] = stamps.get(asked, CREATED_NS if anew else self.told.now)
        self.since[name] = now

    def _computed(self) -> Nodes:
        found = Nodes()
        for name, one in self.nodes.items():
            here = [
                each
                for each in self.pods.values()
                if each["spec"]["nodeName"] == name and each["status"]["phase"] not in ("Succeeded", "Failed")
            ]
            node_ = from_json("Node", one)
            allocatable = allocatable_of(node_)
            total = Counter(dict.fromkeys((*COUNTED, *allocatable), 0))
            for each in here:
                total.update(requests_of_pod(from_json("Pod", each)))
            requested = {key: amount for key, amount in total.items() if amount or key in (*COUNTED, *allocatable)}
            found.put(
                NodeView(
                    node_,
                    pods=[placed_pod(_with_few_annotations(each)) for each in here],
                    allocatable=as_amounts(allocatable),
                    requested=as_amounts(requested),
                    since=self.since[name],
                )
            )
        return found


def _name(one: Any) -> str:
    return str(one.name)


def _with_few_annotations(one: Object) -> Object:
    kept = {key: value for key, value in one["metadata"]["annotations"].items() if key == "keep"}
    return one | {"metadata": one["metadata"] | {"annotations": kept}}


TestKeptEqualsComputed = KeptEqualsComputed.TestCase
TestKeptEqualsComputed.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
