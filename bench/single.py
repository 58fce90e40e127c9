"""Single calls of the real server, over one kept connection with mutual TLS, against those of peers in Go without.

All are called in turn, so that they meet the same noise; what is reported is how they relate.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

import msgspec

from bench import cluster, programs, webhook
from bench.apiserver import ApiServer
from bench.measure import Benchmark, Benchmarks, Size
from bench.report import main

CALLS: Final = 200
_RUNS: Final = 10
_BODIES: Final = 16  # more than the server remembers
_OTHER: Final = "nobody-filters"
_QUARTER: Final = "a-quarter-is-refused"


class Times(NamedTuple):
    """Of one run, in nanoseconds."""

    p50: float
    p99: float


Run = Mapping[str, Times]
"""By who was called."""


def policy(name: str, filters: Sequence[str], scores: Sequence[str] = ()) -> dict[str, Any]:
    """A policy for a scheduler of its own name."""
    plain = cluster.plain(filters, scores)
    return {**plain, "metadata": {"name": name}, "spec": {**plain["spec"], "schedulerName": name}}


POLICIES: Final = (
    policy(cluster.SCHEDULER, webhook.KEEPING),
    policy(_QUARTER, cluster.FILTERS),
    policy(_OTHER, (), cluster.SCORES),
)


@contextmanager
def served(nodes: int) -> Iterator[tuple[Path, programs.Extender]]:
    """A server that knows so many nodes; and a folder."""
    api = ApiServer()
    api.have("nodes", (_listed(at) for at in range(nodes)))
    with tempfile.TemporaryDirectory() as name, api.serving():
        folder = Path(name)
        kubeconfig = api.kubeconfig(folder / "kubeconfig")
        with programs.fairlead_running(folder, POLICIES, kubeconfig) as extender:
            yield folder, extender


@cache
def _measured(size: Size) -> Mapping[str, list[Run]]:
    """All runs, by what was asked."""
    many, few = size.nodes, max(4, size.nodes // webhook.SAMPLE)
    with (
        served(size.nodes) as (folder, own),
        programs.peer_running("bare") as bare,
        programs.peer_running("limit") as limit,
    ):

        def asking(name: str, bodies: Sequence[bytes], *peers: tuple[str, programs.Extender]) -> list[Run]:
            files = [folder / f"{name}-{at}.json" for at in range(len(bodies))]
            for file, body in zip(files, bodies, strict=True):
                file.write_bytes(body)
            chosen = [("own", own), *peers]
            targets = [programs.Target(f"{one.url}/filter", files) for _, one in chosen]
            calls = max(2, CALLS // (1 + len(bodies[0]) // 1_000_000))
            rounds = range(max(1, size.rounds * _RUNS // 50))
            found = [programs.call(targets, calls, folder / "certificates") for _ in rounds]
            return [{who: _times(took) for (who, _), took in zip(chosen, each, strict=True)} for each in found]

        both = (("bare", bare), ("limit", limit))
        return {
            "kept": asking("kept", _named(many), *both),
            "refused": asking("refused", _named(many, _QUARTER), *both),
            "unfiltered": asking("unfiltered", _named(many, _OTHER), *both),
            "sample": asking("sample", _named(few), *both),
            "sample-unfiltered": asking("sample-unfiltered", _named(few, _OTHER), *both),
            "whole": asking("whole", [_whole(few)], ("bare", bare)),
        }


def _times(took: Sequence[int]) -> Times:
    cuts = quantiles(took, n=100, method="inclusive")
    return Times(cuts[49], cuts[98])


def _named(many: int, scheduler: str = cluster.SCHEDULER) -> list[bytes]:
    names = [cluster.name(at) for at in range(many)]
    starts = [at * many // _BODIES for at in range(_BODIES)]
    return [webhook.body(b"null", msgspec.json.encode([*names[at:], *names[:at]]), scheduler) for at in starts]


def _whole(many: int) -> bytes:
    items = b",".join(webhook.whole_node(at) for at in range(many))
    return webhook.body(b'{"metadata":{},"items":[' + items + b"]}", b"null")


def _listed(at: int) -> bytes:
    """A node as `cluster` has it."""
    labels = dict(cluster.node(at).labels)
    about = {"name": cluster.name(at), "uid": f"uid-{at}", "resourceVersion": "1", "labels": labels}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return msgspec.json.encode({"metadata": about, "spec": {}, "status": {"capacity": amounts, "allocatable": amounts}})


def _ratio(asked: str, peer: str, of: Callable[[Times], float] = lambda times: times.p50) -> Benchmark:
    """Ratio of the server's time to the peer's median."""
    return Benchmark("ratio", lambda size: [of(run["own"]) / run[peer].p50 for run in _measured(size)[asked]])


BENCHMARKS: Final[Benchmarks] = {
    "single-5000-names-p50-to-bare": _ratio("kept", "bare"),
    "single-5000-names-p99-to-bare-p50": _ratio("kept", "bare", lambda times: times.p99),
    "single-5000-names-p50-to-limit": _ratio("kept", "limit"),
    "single-5000-names-quarter-refused-p50-to-bare": _ratio("refused", "bare"),
    "single-5000-names-no-filter-p50-to-limit": _ratio("unfiltered", "limit"),
    "single-500-names-p50-to-bare": _ratio("sample", "bare"),
    "single-500-names-no-filter-p50-to-limit": _ratio("sample-unfiltered", "limit"),
    "single-whole-nodes-p50-to-bare": _ratio("whole", "bare"),
}

if __name__ == "__main__":
    main(BENCHMARKS)
