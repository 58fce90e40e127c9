"""Scores that compare nodes: calls of `pigeon` and `topology`, and a change of one node in the sums that are kept."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from time import monotonic_ns
from typing import Any, Final

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main
from fairlead.api.parse import parse_policy
from fairlead.cel.values.structs import from_json
from fairlead.cooperative import finish
from fairlead.learned.demands import Moments, moments
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.compared_views import follow, kept_system
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import placed_pod
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import DemandsRead, NodeChange, SystemRead
from fairlead.strategies.registry import installed, policy_with

STRATEGIES: Final = {one.name: one for one in installed()}
MODEL: Final = policy_with(STRATEGIES.values())
_CPU, _MEMORY = 8.0, 32.0 * (1 << 30)
_TENTH: Final = 10
_ONE_CHANGED: Final = NodeChange(requested=frozenset({"cpu", "memory"}))


def policy_of(scores: Sequence[Mapping[str, Any]]) -> CompiledPolicy:
    """Return a policy with these scores."""
    written = cluster.plain(())
    written["spec"]["scores"] = [dict(one) for one in scores]
    return compile_policy(parse_policy(written, MODEL), CompileOptions(STRATEGIES))


def adaptive(size: Size) -> list[float]:
    """Score all nodes, with two resources."""
    return _calls(size, {})


def adaptive_of_a_sample(size: Size) -> list[float]:
    """Score a tenth of the nodes."""
    return _calls(size, {}, size.nodes // _TENTH or 1)


def topology_of_members(size: Size) -> list[float]:
    """Score all nodes by the members of a group on 40 of them, on three levels."""
    return _topology_calls(size, members=40)


def topology_without_members(size: Size) -> list[float]:
    """Score all nodes for the first member of a group, after the change of a node."""
    return _topology_calls(size, members=0)


def consolidate(size: Size) -> list[float]:
    """Score all nodes by the sums of the shares up to a mean, made again after the change of a node."""
    return _calls(size, {"objective": "Consolidate"})


def change(size: Size) -> list[float]:
    """Follow a change of one node, in microseconds."""
    return [1000 * one for one in _changes(size, lambda sums: sums.figures)]


def change_in_order(size: Size) -> list[float]:
    """Follow a change of one node, with the sums of the shares in order."""
    return _changes(size, lambda sums: (sums.figures, sums.ordered.below(sums.prime_total // sums.number)))


def _calls(size: Size, params: Mapping[str, Any], asked: int | None = None) -> list[float]:
    nodes, pod, turns = _nodes(size.nodes), _pod(), count()
    asking = Evaluator(policy_set([policy_of([{"name": "s", "pigeon": dict(params)}])]), nodes)

    def prepare() -> Sequence[str]:
        nodes.put(_node(next(turns) * 7 % size.nodes, next(turns)), _ONE_CHANGED)
        return cluster.names(size.nodes)[:asked]

    def call(names: Sequence[str]) -> None:
        matched = asking.matching(pod, cluster.SCHEDULER, cluster.NOW, clock=monotonic_ns, deadline_ns=cluster.NEVER)
        asking.score(pod, matched, names, now=cluster.NOW, clock=monotonic_ns, deadline_ns=cluster.NEVER)

    return timed(call, size.rounds, prepare)


def _topology_calls(size: Size, members: int) -> list[float]:
    levels = ["example.org/block", "example.org/rack", "kubernetes.io/hostname"]
    group = {"group": "pod.metadata.labels[?'job-name'].orValue('')", "size": "40"}
    turns, nodes = count(), Nodes()
    asking = Evaluator(policy_set([policy_of([{"name": "s", "topology": {"levels": levels, **group}}])]), nodes)
    labels = {"job-name": "train"}
    metadata = {"name": "new", "namespace": "ml", "labels": labels}
    pod = PodView(from_json("Pod", {"metadata": metadata}), request={"cpu": 0.5, "memory": float(1 << 30), "pods": 1.0})

    def node(at: int, turn: int) -> NodeView:
        where = dict(zip(levels, (f"b{at // 250}", f"r{at // 25}", cluster.name(at)), strict=True))
        whole = {"metadata": {"name": cluster.name(at), "labels": where}}
        names = [f"train-{at}"] if at % 125 == 0 and at // 125 < members else []
        pods = [placed_pod({"metadata": metadata | {"name": name}, "status": {"phase": "Running"}}) for name in names]
        used = {"cpu": _CPU * (turn * 37 % 90) / 100, "memory": _MEMORY * (turn * 53 % 80) / 100, "pods": 30.0}
        has = {"cpu": _CPU, "memory": _MEMORY, "pods": 110.0}
        return NodeView(from_json("Node", whole), pods=pods, allocatable=has, requested=used)

    def prepare() -> Sequence[str]:
        nodes.put(node(next(turns) * 7 % size.nodes, next(turns)), _ONE_CHANGED)
        return cluster.names(size.nodes)

    def call(names: Sequence[str]) -> None:
        matched = asking.matching(pod, cluster.SCHEDULER, cluster.NOW, clock=monotonic_ns, deadline_ns=cluster.NEVER)
        asking.score(pod, matched, names, now=cluster.NOW, clock=monotonic_ns, deadline_ns=cluster.NEVER)

    for at in range(size.nodes):
        nodes.put(node(at, at))
    call(cluster.names(size.nodes))
    return timed(call, size.rounds, prepare)


def _changes(size: Size, read: Callable[[Any], object]) -> list[float]:
    nodes, turns = _nodes(size.nodes), count()
    system = kept_system(nodes, SystemRead(("cpu", "memory")))
    finish(follow(nodes, system))

    def prepare() -> None:
        nodes.put(_node(next(turns) * 7 % size.nodes, next(turns)), _ONE_CHANGED)

    def call(_: None) -> None:
        finish(follow(nodes, system))
        read(system.sums)

    return timed(call, 10 * size.rounds, prepare)


def _nodes(many: int) -> Nodes:
    nodes = Nodes()
    for at in range(many):
        nodes.put(_node(at, at))
    nodes.learned_demands = _learned
    return nodes


def _node(at: int, turn: int) -> NodeView:
    conditions = [{"type": "Ready", "status": "True"}]
    whole = {"metadata": {"name": cluster.name(at)}, "spec": {}, "status": {"conditions": conditions}}
    return NodeView(
        from_json("Node", whole),
        allocatable={"cpu": _CPU, "memory": _MEMORY},
        requested={"cpu": _CPU * (turn * 37 % 90) / 100, "memory": _MEMORY * (turn * 53 % 80) / 100},
    )


def _pod() -> PodView:
    seen = cluster.pod()
    return PodView(seen.pod, request={"cpu": 0.5, "memory": float(1 << 30)})


def _learned(_policy_uid: str, _rule: str, read: DemandsRead) -> Moments:
    return moments({(at, "u"): (0.1 + at % 5, float((1 + at % 3) << 28)) for at in range(100)}, read.floors)


BENCHMARKS: Final[Benchmarks] = {
    "pigeon-adaptive-500": Benchmark("ms", adaptive_of_a_sample),
    "pigeon-adaptive-5000": Benchmark("ms", adaptive),
    "pigeon-consolidate-5000": Benchmark("ms", consolidate),
    "topology-members-5000": Benchmark("ms", topology_of_members),
    "topology-no-members-5000": Benchmark("ms", topology_without_members),
    "pigeon-system-change": Benchmark("us", change),
    "pigeon-system-change-consolidate": Benchmark("ms", change_in_order),
}

if __name__ == "__main__":
    main(BENCHMARKS)
