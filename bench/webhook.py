"""Cost of a call of the scheduler, from the bytes of its request to those of the reply; everything is kept."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from time import monotonic_ns
from typing import Any, Final

import msgspec

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main
from fairlead.mirror import decode
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, VerbReply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import ServingState, build_serving_state

CALLER: Final = Caller(schedulers=frozenset({cluster.SCHEDULER}), ignore_entry=True)
WHEN: Final = CallClock(cluster.NOW, monotonic_ns, cluster.NEVER)
KEEPING: Final = ("variables.wants != ''", *cluster.FILTERS[1:])
"""Three filters that reject no node; of those of `cluster` the first rejects a quarter."""
BYTES: Final = 5000  # of a node in a request
SAMPLE: Final = 10


class Known:
    """A mirror that knows no more than it is given."""

    def namespace(self, *_: object) -> None:
        """Of none."""

    def unplaced(self, *_: object) -> None:
        """None."""

    def granted_uid(self, *_: object) -> str:
        """No pod has an entry in a ledger."""
        return ""

    def request_of(self, *_: object) -> Mapping[str, float]:
        """The same for all."""
        return {"cpu": 1.0}

    requests_of_placed = request_of

    def decode_full_node(self, node: bytes, *, images: bool) -> Any:
        """As it is written."""
        return decode.node(node) if images else decode.node_without_images(node)

    def view_full_node(self, given: Any) -> NodeView:
        """With no pods on it."""
        return NodeView(given, allocatable={"cpu": 8.0}, requested={"cpu": 1.0})


def no_filter(size: Size) -> list[float]:
    """No policy is for the pod."""
    return _filtered(size, size.nodes, PolicySet())


def none_rejected(size: Size) -> list[float]:
    """Three filters, and all nodes pass."""
    return _filtered(size, size.nodes, cluster.policies(KEEPING))


def quarter_refused(size: Size) -> list[float]:
    """One of three filters refuses a quarter of the nodes; the entry Ignore comes after, so that reasons are sent."""
    return _filtered(size, size.nodes, cluster.policies(cluster.FILTERS))


def sample(size: Size) -> list[float]:
    """The scheduler's own sample of the nodes, a quarter refused."""
    return _filtered(size, max(4, size.nodes // SAMPLE), cluster.policies(cluster.FILTERS))


def prioritized(size: Size) -> list[float]:
    """Prioritize about what filter was asked about just before."""
    asked, bodies = _world(size, cluster.policies(KEEPING, cluster.SCORES)), _bodies(size.nodes)

    def prepare() -> bytes:
        body = bodies()
        verbs.filter(body, asked, CALLER, "Fail", WHEN)
        return body

    return _micro(lambda body: verbs.prioritize(body, asked, CALLER, WHEN), size.rounds, prepare)


def whole_nodes(size: Size) -> list[float]:
    """Nodes of 5 kB, three filters from nothing, a quarter refused: what a simulator asks."""
    many = max(4, size.nodes // SAMPLE)
    asked, items = _world(size, cluster.policies(cluster.FILTERS)), [whole_node(at) for at in range(many)]
    given = body(b'{"metadata":{},"items":[' + b",".join(items) + b"]}", b"null")
    return _micro(lambda _: verbs.filter(given, asked, CALLER, "Fail", WHEN), max(1, size.rounds // 2), lambda: None)


def _filtered(size: Size, many: int, policies: PolicySet) -> list[float]:
    asked = _world(size, policies)
    return _micro(lambda body: verbs.filter(body, asked, CALLER, "Fail", WHEN), size.rounds, _bodies(many))


def _micro(call: Callable[[Any], VerbReply], rounds: int, prepare: Callable[[], Any]) -> list[float]:
    return [1000 * sample for sample in timed(call, rounds, prepare)]


def _world(size: Size, policies: PolicySet) -> ServingState:
    return build_serving_state(
        policies, cluster.nodes(size.nodes), Known(), CircuitBreaker(), NodeNameCache(), RuleErrorTally()
    )


def _bodies(many: int) -> Callable[[], bytes]:
    """Requests about so many nodes; each begins at another one, as the scheduler does."""
    names: Sequence[str] = [cluster.name(at) for at in range(many)]
    turns = count(step=7)

    def made() -> bytes:
        first = next(turns) % many
        return body(b"null", msgspec.json.encode([*names[first:], *names[:first]]))

    return made


def body(nodes: bytes, names: bytes, scheduler: str = cluster.SCHEDULER) -> bytes:
    """A request about nodes, or about those of these names, as JSON."""
    about = {"name": "web", "namespace": "default", "uid": "2e1d146a-1a95-4916-831a-f191abafd93d"}
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "schedulerName": scheduler, "priority": 5}
    labels = {"app": "web", "gpu": "a"}
    pod = msgspec.json.encode({"metadata": {**about, "labels": labels}, "spec": spec, "status": {"phase": "Pending"}})
    return b'{"Pod":' + pod + b',"Nodes":' + nodes + b',"NodeNames":' + names + b"}"


def whole_node(at: int) -> bytes:
    """As long as nodes in clouds are."""
    labels = {**cluster.node(at).labels}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status: dict[str, Any] = {"capacity": amounts, "allocatable": amounts}
    written = {"metadata": {"name": cluster.name(at), "labels": labels, "managedFields": []}, "spec": {}}
    images: list[dict[str, Any]] = []
    while len(msgspec.json.encode({**written, "status": status})) + 100 * len(images) < BYTES:
        images.append({"names": [f"registry.example.org/{len(images):060}"], "sizeBytes": 12345678})
    return msgspec.json.encode({**written, "status": {**status, "images": images}})


BENCHMARKS: Final[Benchmarks] = {
    "webhook-no-filter": Benchmark("us", no_filter),
    "webhook-none-rejected": Benchmark("us", none_rejected),
    "webhook-quarter-refused": Benchmark("us", quarter_refused),
    "webhook-sample": Benchmark("us", sample),
    "webhook-prioritize-after-filter": Benchmark("us", prioritized),
    "webhook-whole-nodes": Benchmark("us", whole_nodes),
}

if __name__ == "__main__":
    main(BENCHMARKS)
