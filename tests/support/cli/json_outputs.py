"""Outputs of commands for programs, as real runs print them, with all fields that they can have."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final
from unittest.mock import AsyncMock, patch

import yaml
from msgspec import to_builtins

from fairlead.api.parse import parse_policy
from fairlead.cli.inputs.replica_decisions import ReplicaDecisions
from fairlead.cli.inputs.replica_values import page_of
from fairlead.cli.main import main
from fairlead.grants.entry import GrantedDevice, LedgerEntry
from fairlead.grants.ledger import create_body
from fairlead.groups.turns import NO_TURNS, turns_body
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, REQUIRED
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.time_units import SECOND_NS
from fairlead.webhook.decisions.decision_record import (
    BestNode,
    DecidingPolicy,
    DecisionRecord,
    Effect,
    RuleRejections,
    as_data,
)
from policies.good import device_share, gang, policy
from support.cli.status import SCENES
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.learned.published import published, published_requests
from support.policy import INSTALLED, MODEL
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import owned, workload

Path_ = tuple[str, ...]
_CHECKOUT: Final = Path(__file__).parents[3]
_EXAMPLES: Final = _CHECKOUT / "examples"
_GPU: Final = (str(_EXAMPLES / "gpu-class.yaml"), str(_EXAMPLES / "clusters" / "gpus.yaml"))
_MEMORY: Final = "aliyun.com/gpu-mem"
_FAILING: Final = f"""
policies: [{_EXAMPLES / "gpu-class.yaml"}]
nodes: [{{metadata: {{name: a}}}}]
cases:
- {{name: fails, pod: {{metadata: {{labels: {{example.com/gpu: a100}}}}}}, expect: {{rejected: {{a: never}}}}}}
"""


def _run(*arguments: str) -> Any:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        main([*arguments, "-o", "json"])
    return json.loads(out.getvalue())


def fields(value: object, at: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of all fields; items of a list are in `name[]`."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            here = (*at, f"{key}[]" if isinstance(below, list) else str(key))
            yield here
            yield from fields(below, here)
    elif isinstance(value, list):
        for item in value:
            yield from fields(item, at)


def outputs(folder: Path) -> dict[str, Sequence[Any]]:
    """Return the outputs of each command, by its name."""
    policies, cluster = _GPU
    simulated = ("--policies", policies, "--snapshot", cluster)
    other = folder / "other.yaml"
    other.write_text(Path(policies).read_text().replace("wrong class of GPU", "another").replace("== ", "!= "))
    (folder / "bad.yaml").write_text("apiVersion: fairlead.dev/v1alpha1\nkind: SchedulerExtenderPolicy\n")
    (folder / "a.test.yaml").write_text(_FAILING)
    return {
        "lint": [_run("lint", policies, str(folder / "bad.yaml"))],
        "affinity": [_affinity(folder)],
        "test": [_run("test", str(folder / "a.test.yaml"), policies)],
        "simulate": [
            _run("simulate", *simulated, "--pods", cluster),
            _grouped(folder, "simulate"),
            _published(folder, "simulate"),
            _shadowed(folder, "simulate"),
        ],
        "explain": [
            *(_run("explain", name, *simulated) for name in ("train", "new-model")),
            *_explained(folder),
            _grouped(folder, "explain"),
            _published(folder, "explain"),
            _shadowed(folder, "explain"),
        ],
        "explain --node": [
            *(_run("explain", name, *simulated, "--node", "a100-small") for name in ("train", "new-model")),
            _grouped(folder, "explain --node"),
            _published(folder, "explain --node"),
            _shadowed(folder, "explain --node"),
        ],
        "explain --pending": [
            _run("explain", "--pending", "-A", *simulated),
            _shadowed(folder, "explain --pending"),
        ],
        "diff": [
            _run("diff", "--from", policies, "--to", str(other), "--snapshot", cluster, "--pods", cluster),
            _run("diff", "--from", str(other), "--to", policies, "--snapshot", cluster, "--pods", cluster),
            _grouped(folder, "diff"),
            _published(folder, "diff"),
            _shadowed(folder, "diff"),
        ],
        "status": [*_statuses(folder)],
        "shadow": [_counted(folder)],
        "decisions": [_decisions()],
        "data POLICY": [*_data(folder)][:1],
        "data": [*_data(folder)][1:],
        "devices": [*_devices(folder)],
        "learned": [_learned(folder)],
        "groups": [*_groups(folder)],
        "version": [_run("version")],
    }


def _grouped(folder: Path, command: str) -> Any:
    """Return what a command says of a member of a group."""
    for name, size in (("gang", "2"), ("larger", "3")):
        written = policy(binding={"gang": [gang(size=size)]})
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(written))
    member = pod("member", labels={"job-name": "job"})
    (folder / "members.json").write_text(json.dumps(listed(node("a"), member)))
    return _about_pod(command, "member", folder / "members.json", folder / "gang.yaml", folder / "larger.yaml")


def _about_pod(command: str, name: str, snapshot: Path, policies: Path, edited: Path) -> Any:
    """Return what a command says of a pod of a snapshot."""
    there = ("--snapshot", str(snapshot))
    if command == "diff":
        return _run("diff", "--from", str(policies), "--to", str(edited), *there, "--pods", str(snapshot))
    if command == "simulate":
        return _run("simulate", "--policies", str(policies), *there, "--pods", str(snapshot))
    node_of = ("--node", "a") if command == "explain --node" else ()
    return _run("explain", name, "-n", "ml", "--policies", str(policies), *there, *node_of)


def _counted(folder: Path) -> Any:
    """Return what is counted of rules in shadow, and a present pod that they would touch."""
    rack = {"name": "rack", "topology": {"levels": ["rack"], "require": "rack"}}
    rule = {"name": "not-a", "expression": "node.metadata.name != 'a'"}
    made = policy(mode="Shadow", filters=[rule, rack])
    counts = {
        "generation": 1,
        "since": "2026-01-01T00:00:00Z",
        "pods": 1,
        "rules": [{"kind": "Filter", "name": "not-a"}],
    }
    made |= {"metadata": {"name": "p", "uid": "u", "generation": 1}, "status": {"shadow": counts}}
    answers = {
        "/version": {},
        POLICIES: items(made),
        "/api/v1/nodes": items(node("a"), node("b")),
        "/api/v1/pods": items(pod("waits")),
        "/api/v1/namespaces": items({"metadata": {"name": "ml"}}),
        "/api/v1/configmaps": items(),
    }
    with api_server(answers, folder) as file:
        return _run("shadow", "p", "--pods", "--kubeconfig", str(file))


def _shadowed(folder: Path, command: str) -> Any:
    """Return what a command says of a pod that would lose a node to a rule in shadow."""
    rule = {"name": "not-a", "mode": "Shadow", "expression": "node.metadata.name != 'a'"}
    (folder / "shadow.yaml").write_text(yaml.safe_dump(policy(filters=[rule])))
    (folder / "shadowed.json").write_text(json.dumps(listed(node("a"), node("b"), pod("was"))))
    file = folder / "shadow.yaml"
    if command == "explain --pending":
        there = ("--snapshot", str(folder / "shadowed.json"))
        return _run("explain", "--pending", "-A", "--policies", str(file), *there)
    return _about_pod(command, "was", folder / "shadowed.json", file, file)


def _published(folder: Path, command: str) -> Any:
    """Return what a command says of a pod that was created with affinity of which a part is published no more."""
    for name, which in (("pool", "== 'a'"), ("pools", "!= ''")):
        room = {"name": "pool", "expression": f"node.metadata.labels[?'pool'].orValue('') {which}"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(policy(publish="NodeAffinity", filters=[room])))
    was = pod("was")
    was["metadata"]["annotations"] = {PUBLISHED_ANNOTATION: "0123456789ab"}
    asked = [{"key": "pool", "operator": "In", "values": ["a"]}, {"key": "disk", "operator": "Exists"}]
    was["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": asked}]}}}
    was["status"] = {"nominatedNodeName": "b"}
    nodes = [node(name, labels={"pool": name}) for name in ("a", "b")]
    (folder / "was.json").write_text(json.dumps(listed(*nodes, was, pod("new"))))
    return _about_pod(command, "was", folder / "was.json", folder / "pool.yaml", folder / "pools.yaml")


def _affinity(folder: Path) -> Any:
    """Return what policies imply that read every fact about a pod, and what they leave out."""
    facts = {
        "label": "pod.metadata.labels[?'a'].orValue('')",
        "annotation": "pod.metadata.annotations[?'a'].orValue('')",
        "namespace-label": "namespaceObject.metadata.labels[?'a'].orValue('')",
        "namespace": "pod.metadata.namespace",
    }
    resource = "pod.spec.containers.exists(one, 'a.b/c' in one.resources.limits)"
    guards = [f"{fact} == 'x'" for fact in facts.values()] + [resource]
    labels = "node.metadata.labels"
    filters = [{"name": name, "expression": f"{labels}['{name}'] == {fact}"} for name, fact in facts.items()]
    filters += [
        {"name": "either", "expression": f"({' && '.join(guards)}) || {labels}['b'] == 'x'"},
        {"name": "room", "expression": "free['cpu'] > 2.0"},
    ]
    conditions = [{"name": f"c{at}", "expression": guard} for at, guard in enumerate(guards)]
    urgent = {"conditions": [{"name": "urgent", "expression": "pod.spec.priority > 5"}]}
    pool = [{"name": name, "expression": f"{labels}['pool'] == 'x'"} for name in ("pool", "later")]
    pool[1]["mode"] = "Shadow"
    policies = {
        "all": policy(match={"conditions": conditions}, filters=filters),
        "urgent": policy(match=urgent, filters=filters),
        "pool": policy(filters=pool),
    }
    written = [one | {"metadata": {"name": name}} for name, one in policies.items()]
    (folder / "affinity.yaml").write_text(yaml.safe_dump_all(written))
    waits = pod("waits")
    waits["spec"]["schedulerName"] = "fairlead"
    (folder / "affinity.json").write_text(json.dumps(waits))
    return _run("affinity", str(folder / "affinity.yaml"), "-f", str(folder / "affinity.json"))


def _learned(folder: Path) -> Any:
    """Return what a rule has learned of a node that is there."""
    works = policy(scores=[{"name": "works", "kubeRL": {}}, {"name": "packs", "pigeon": {"resources": ["cpu"]}}])
    (folder / "works.yaml").write_text(yaml.safe_dump(works))
    compiled = compile_policy(parse_policy(works, MODEL), CompileOptions(INSTALLED))
    known = published(compiled, [("ml/train", "u-a", 1.0, 3.0, 1_800_000_000)])
    known.append(published_requests(compiled, {(1_800_000_000, "u-pod"): (0.5,)}))
    (folder / "known.json").write_text(json.dumps(listed(node("a"), *known)))
    return _run("learned", "--policies", str(folder / "works.yaml"), "--snapshot", str(folder / "known.json"))


def _groups(folder: Path) -> Iterator[Any]:
    """Yield groups in each state, and one with a gated member and one of which it cannot be told."""
    entry = gang(size="int(pod.metadata.annotations[?'size'].orValue('2'))")
    (folder / "gang.yaml").write_text(yaml.safe_dump(policy(binding={"gang": [entry]})))
    pods = [pod(name, labels={"job-name": "a"}) for name in ("a-0", "a-1", "bad")]
    pods[1]["spec"]["schedulingGates"] = [{"name": "quota"}]
    pods[2]["metadata"]["annotations"] = {"size": "many"}
    unreadable = turns_body("fairlead", NO_TURNS) | {"data": {"turns": "{"}}
    (folder / "groups.json").write_text(json.dumps(listed(node("a"), *pods, unreadable)))
    files = ("--policies", str(folder / "gang.yaml"), "--snapshot", str(folder / "groups.json"))
    yield _run("groups", *files)
    yield _run("groups", "ml/a", *files)


_KEEP: Final = """
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: keep}
spec:
  data: [{name: load, prometheus: {query: load}}]
  filters: [{name: cool, expression: data.load < 0.5}]
  preemption:
    protect: [{name: kept, expression: "'keep' in victim.metadata.labels"}]
"""


def _explained(folder: Path) -> Iterator[Any]:
    """Yield what is known of a pod that lacks room, without a cluster and of one whose scheduler does not exist."""
    (folder / "keep.yaml").write_text(_KEEP)
    waits = pod("waits", asks={"cpu": "4"}, priority=1000)
    waits["spec"]["schedulerName"] = "fairlead"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    waits["status"] = {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    there = [
        *(node(name, room={"cpu": "4"}) for name in ("a", "b")),
        pod("a1", on="a", asks={"cpu": "4"}, labels={"keep": ""}, priority=1),
        pod("b1", on="b", asks={"cpu": "4"}, priority=1),
        waits,
    ]
    (folder / "room.json").write_text(json.dumps(listed(*there)))
    files = ("--policies", str(folder / "keep.yaml"), "--snapshot", str(folder / "room.json"))
    yield _run("explain", "waits", *files)
    failing = workload("ReplicaSet", "web", replicas=2)
    failing["status"] = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]}
    (folder / "of.json").write_text(
        json.dumps(listed(failing, owned(pod("web-1", asks={"cpu": "9"}), "ReplicaSet", "web")))
    )
    yield _run("explain", "rs/web", *files, str(folder / "of.json"))
    keep = yaml.safe_load(_KEEP)
    keep["metadata"] |= {"uid": "keep", "generation": 2}
    lost = {**waits, "spec": {**waits["spec"], "schedulerName": "fairleed"}}
    namespace = {"metadata": {"name": "ml"}}
    answers = {
        "/version": {},
        POLICIES: items(keep),
        "/api/v1/nodes": items(*there[:2]),
        "/api/v1/namespaces/ml": namespace,
        "/api/v1/configmaps": items(),
    }
    for pods in (there[2:], [*there[2:4], lost]):
        with api_server({**answers, "/api/v1/pods": items(*pods)}, folder) as file:
            yield _run("explain", "waits", "-n", "ml", "--kubeconfig", str(file))


def _statuses(folder: Path) -> Iterator[Any]:
    for answers, _ in SCENES.values():
        with api_server(answers, folder) as file:
            yield _run("status", "--kubeconfig", str(file))


def _decisions() -> Any:
    """Return what is said of a decision with everything that one may have, and of a replica that is not read."""
    record = DecisionRecord(
        1_800_000_000 * SECOND_NS, "fairlead", "ml", "x", "u", "refused", candidates=3, passed=1, milliseconds=0.5
    )
    record.policies = (DecidingPolicy("p", "2"),)
    record.rules = (RuleRejections("p", "f", "no GPU", 2, ("b", "c")),)
    record.best, record.effects = (BestNode("a", 3),), (Effect("q", ("restricted",), ("g",)),)
    read = ReplicaDecisions("r-0", "2027-01-15T08:00:00.000Z", [to_builtins(as_data(record, waits=True))])
    both = AsyncMock(return_value=[read, ReplicaDecisions("r-1", unread="it does not answer")])
    with patch("fairlead.cli.commands.decisions._read", both):
        return _run("decisions")


_WITHOUT_VALUE: Final = {"b": {"value": 1.0, "default": True}, "c": {"fault": "is missing"}}


def _data(folder: Path) -> Iterator[Any]:
    replica = {
        "name": "fairlead-a",
        **dict.fromkeys(("nodes", "withValue", "onDefault", "oldestAgeSeconds", "medianAgeSeconds", "failedPolls"), 1),
        "withoutValue": [{"reason": "Stale", "nodes": 1, "names": "a"}],
        "lastSuccess": "2026-01-01T00:00:00Z",
        "lastError": "refused",
        "note": "look",
    }
    entry = {
        "name": "load",
        "source": "prometheus default: load",
        "intervalSeconds": 15,
        "maxAgeSeconds": 60,
        "observedTime": "2026-01-01T00:00:00Z",
        "replicas": [replica],
    }
    ready = {"type": "DataReady", "status": "False", "reason": "DataStale", "message": "load"}
    hot = {
        "metadata": {"name": "hot"},
        "spec": {"data": [{"name": "load", "prometheus": {"query": "load"}}]},
        "status": {"conditions": [ready], "data": [entry]},
    }
    page = {"nodes": {"a": {"value": 0.4, "time": "2026-01-01T00:00:00Z", "ageSeconds": 3.0}, **_WITHOUT_VALUE}}
    answer = AsyncMock(return_value=("fairlead-a", {page_of("hot", "load"): page}))
    with api_server({POLICIES: items(hot), f"{POLICIES}/hot": hot}, folder) as file:
        with patch("fairlead.cli.inputs.replica_values.ask_replica", answer):
            yield _run("data", "hot", "--kubeconfig", str(file))
        yield _run("data", "--kubeconfig", str(file))


def _devices(folder: Path) -> Iterator[Any]:
    (folder / "shares.yaml").write_text(yaml.safe_dump(policy(binding={"deviceShare": [device_share()]})))
    (folder / "devices.json").write_text(json.dumps(listed(*_granted())))
    yield _run("devices", "--policies", str(folder / "shares.yaml"), "--snapshot", str(folder / "devices.json"))


def _granted() -> Iterator[Object]:
    for name in ("g1", "g2", "g3"):
        made = node(name, room={_MEMORY: "16", "aliyun.com/gpu-count": "2"})
        made["status"]["capacity"] = dict(made["status"]["allocatable"])
        if name == "g3":  # it is not known which of its devices is sick
            made["status"]["allocatable"][_MEMORY] = "8"
        yield made
    for name, on in (("a", "g1"), ("stray", "g2")):
        made = pod(name, on=on, asks={_MEMORY: "5"})
        made["metadata"] |= {"resourceVersion": "5", "annotations": {"fairlead.dev/devices.gpu": "1"}}
        made["spec"]["schedulerName"] = "fairlead"
        yield made
    grant = LedgerEntry("ml/a", "5", "some", {"gpu": (GrantedDevice("0", {_MEMORY: 5}),)})
    for name, entries in (("g1", {"u-a": grant}), ("g2", {})):
        made = create_body(name, entries)
        made["metadata"] |= {"namespace": "fairlead-system", "uid": name, "resourceVersion": "9"}
        made["data"] |= {"u_x": "{}", "u_y": '{"v": 7}'} if name == "g2" else {}
        yield made
