"""Learned state of rules: a publication that is read into its table, the memory that it takes, and calls about it."""

import gc
import tracemalloc
from collections.abc import Mapping, Sequence
from functools import cache
from time import monotonic_ns, thread_time
from typing import Final, NamedTuple

import msgspec

from bench import cluster
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady, timed
from bench.report import main
from bench.systems import policy_of
from fairlead.cel.values.structs import from_json
from fairlead.cooperative import Steps, finish
from fairlead.learned.content import encode_demands, encode_pairs
from fairlead.learned.pair import OutcomeSums, key_of, node_key, text_of
from fairlead.learned.pairs import Key, Meaning, shard_of
from fairlead.learned.published import LearningRule, config_map, names_of
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.time_units import SECOND_NS
from fairlead.webhook.learning.followed_rules import AnyRule, FollowedRule, followed_requests, followed_rules
from fairlead.webhook.learning.state_feed import StateSink, read_state

_NOW: Final = cluster.NOW // SECOND_NS
_TYPES: Final = 4  # on each node
_PODS: Final = 4000
_ASKED: Final = 500
_MIB: Final = 1 << 20
_MEANING: Final = Meaning(21_600)


def table_of_pairs(size: Size) -> list[float]:
    """Read a publication of pairs, each with an id: all of its ConfigMaps."""
    return [one.total for one in _read_pairs(size)]


def piece_of_pairs(size: Size) -> list[float]:
    """Return the longest that others wait meanwhile, and while the keys of the nodes are computed before it."""
    return [one.longest for one in _read_pairs(size)]


def table_of_pods(size: Size) -> list[float]:
    """Read a publication of pods."""
    return [one.total for one in _read_pods(size)]


def piece_of_pods(size: Size) -> list[float]:
    """Return the longest that others wait meanwhile."""
    return [one.longest for one in _read_pods(size)]


def memory(size: Size) -> list[float]:
    """Keep a publication of pairs, which was read twice, beside the keys of the nodes, which are there before it."""
    rule, texts = _publication(size)
    nodes, sink = _followed(size, rule)
    finish(nodes.keep_keys())
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(2):
            for one in texts:
                sink.put(read_state(one))
        gc.collect()
        return [tracemalloc.get_traced_memory()[0] / _MIB]
    finally:
        tracemalloc.stop()


def kept(size: Size) -> list[float]:
    """Ask about some nodes whose scores are kept."""
    rule, texts = _publication(size)
    (nodes, sink), pod = _followed(size, rule), cluster.pod({"app": "app-0"})
    for one in texts:
        sink.put(read_state(one))
    asking = Evaluator(policy_set([rule.policy]), nodes)

    def call(names: Sequence[str]) -> None:
        matched = asking.matching(pod, cluster.SCHEDULER, cluster.NOW)
        asking.score(pod, matched, names, now=cluster.NOW, clock=monotonic_ns, deadline_ns=cluster.NEVER)

    call(cluster.names(size.nodes))
    return timed(call, size.rounds, lambda: cluster.names(min(_ASKED, size.nodes)))


class Reading(NamedTuple):
    """Milliseconds that a publication takes, and the longest of the pieces between which other tasks run."""

    total: float
    longest: float


@cache
def _read_pairs(size: Size) -> list[Reading]:
    rule, texts = _publication(size)
    return _read(size, rule, texts)


@cache
def _read_pods(size: Size) -> list[Reading]:
    (rule,) = followed_requests([policy_of([{"name": "s", "pigeon": {"samples": _PODS}}])])
    amounts = {
        (_NOW - at, f"7f9c24e5-8bd7-4f1e-a0c2-{at:012d}"): (0.1 + at % 7 / 10, float((at % 5 + 1) << 28))
        for at in range(min(_PODS, _TYPES * size.nodes))
    }
    return _read(size, rule, [_config_map(rule.rule, 0, encode_demands(amounts, _PODS).data, "1")])


def _read(size: Size, rule: AnyRule, texts: Sequence[bytes]) -> list[Reading]:
    """Read a publication several times, as its watch does: each ConfigMap is read, and put in a turn of its own.

    Nothing was known of the rule before. The keys of the nodes are computed once, when the first rule learns: that
    takes pieces of its own, and is no part of a publication.
    """
    found = list[Reading]()
    for _ in range(size.rounds // 2 + 1):
        nodes, sink = _followed(size, rule)
        node_key.cache_clear()
        with steady():
            keys = _pieces(nodes.keep_keys()) if isinstance(rule, FollowedRule) else []
            pieces = [piece for one in texts for piece in _pieces(_taken(sink, one))]
        found.append(Reading(sum(pieces), max(keys + pieces)))
    return found[1:]


def _taken(sink: StateSink, text: bytes) -> Steps[None]:
    state = read_state(text)
    yield
    sink.put(state)


def _pieces(steps: Steps[None]) -> list[float]:
    """Return the milliseconds of each piece of a computation."""
    found, began = list[float](), thread_time()
    for _ in steps:
        found.append((thread_time() - began) * MILLI)
        began = thread_time()
    return [*found, (thread_time() - began) * MILLI]


def _publication(size: Size) -> tuple[AnyRule, Sequence[bytes]]:
    """Return a rule, and what is published of it: each node has pairs with some types, each with one recent outcome."""
    (rule,) = followed_rules([policy_of([{"name": "s", "kubeRL": {}}])])
    return rule, _texts(size, rule.rule)


@cache
def _texts(size: Size, rule: LearningRule) -> Sequence[bytes]:
    shards: dict[int, dict[Key, OutcomeSums]] = {}
    for at in range(size.nodes):
        node = node_key(_uid(at))
        for number in range(_TYPES):
            key, newest = (f"default/app-{number}", node), _NOW - at % 800
            weight = 1.0 + at % 997 / 1000
            pair = OutcomeSums(
                weight * (number + 1) / _TYPES, weight, newest, "default", marks_text=text_of([(newest, key_of(*key))])
            )
            shards.setdefault(shard_of(key), {})[key] = pair
    return [
        _config_map(rule, number, encode_pairs(pairs, _MEANING, _NOW).data, "1") for number, pairs in shards.items()
    ]


def _config_map(rule: LearningRule, number: int, data: Mapping[str, str], version: str) -> bytes:
    one = config_map(rule, names_of(rule, number)[0], data)
    one["metadata"] |= {"namespace": "fairlead-system", "uid": f"c-{number}", "resourceVersion": version}
    return msgspec.json.encode(one)


def _followed(size: Size, rule: AnyRule) -> tuple[Nodes, StateSink]:
    nodes = Nodes()
    for view in _views(size):
        nodes.put(view)
    sink = StateSink(nodes, lambda: 0)
    sink.set_rules([rule])
    return nodes, sink


@cache
def _views(size: Size) -> Sequence[NodeView]:
    return [
        NodeView(from_json("Node", {"metadata": {"name": cluster.name(at), "uid": _uid(at)}}))
        for at in range(size.nodes)
    ]


def _uid(at: int) -> str:
    return f"3b241101-e2bb-4255-8caf-{at:012d}"


BENCHMARKS: Final[Benchmarks] = {
    "kuberl-kept-500": Benchmark("ms", kept),
    "learned-table-pairs": Benchmark("ms", table_of_pairs),
    "learned-table-pairs-piece": Benchmark("ms", piece_of_pairs),
    "learned-table-pods": Benchmark("ms", table_of_pods),
    "learned-table-pods-piece": Benchmark("ms", piece_of_pods),
    "learned-memory": Benchmark("MiB", memory),
}

if __name__ == "__main__":
    main(BENCHMARKS)
