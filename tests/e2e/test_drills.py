"""Twenty pods a second while somebody does his worst: he floods the ports, or writes policies that nobody should.

`make drills` is the long run, and floods once more without a limit of the processor for those who flood.
"""

import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import pytest

from support import drills
from support.chart.release import HOOKS, Release, released
from support.drills import Figures, flooders, look, report, within_ms
from support.kube.crd import POLICIES
from support.stream import Follow, Stream, table
from testbed import tables
from testbed.api import Api, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
LASTS_S = int(os.environ.get("FAIRLEAD_DRILL_S", "30"))
"""The author; a flood is not another one after two minutes."""
FLOOD_S = min(LASTS_S, 120)
IS_LONG = "FAIRLEAD_DRILL_S" in os.environ
QUIET_S = LASTS_S // 5
IDLE = 5_000
FILTER_MS = 100.0
"""What the 99th of a hundred calls of filter may take in a flood, by the replicas' own histogram."""
PACE_S = 0.5
"""From one policy of an author to the next, so that what writes them is the same whatever they are."""
Policies = Callable[[int], Mapping[str, dict[str, Any]]]
_BODIES = 20
"""At least that many were sent."""
_LIMIT = "500m"
"""Who floods has no more of a processor: here all programs of a cluster have two."""
_NAMESPACE = "drills"
_NODES = 100
"""With room for all pods of the long run: nothing is to wait for who takes them away."""
_FILTERS = [
    {
        "name": "pool",
        "expression": "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels['pool']",
        "reason": "another pool",
    }
]
_SCORES = [{"name": "room", "expression": "size(pods) < 50 ? 100.0 : 0.0"}]
_NOTES = [{"key": "fairlead.dev/pool", "expression": "node.metadata.labels[?'pool'].orValue('')"}]


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    with released(cluster, operator_image_tag, _NODES) as made:
        made.install()
        made.put("pools", filters=_FILTERS, scores=_SCORES, binding={"annotations": _NOTES})
        made.ready("pools", within="180s")
        yield made


@pytest.fixture(scope="module")
def stream(release: Release, pytestconfig: pytest.Config) -> Iterator[Stream]:
    """Of two schedulers, neither of them hostile."""
    release.put("others", schedulerName="other", filters=_FILTERS, scores=_SCORES)
    release.ready("others", within="180s")
    api, path = Api(release.cluster.kubeconfig), f"/api/v1/namespaces/{_NAMESPACE}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    wait_for("its service account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    with closing(api), closing(Follow(release.cluster.audit_log)) as log:
        pools = {"a": "a", "b": "b"}
        made = Stream(
            api=api,
            namespace=_NAMESPACE,
            log=log,
            nodes={node: "ab"[number % 2] for number, node in enumerate(release.nodes)},
            schedulers={"fairlead": pools, "other": pools},
        )
        made.begin()
        yield made
        made.end()
        tables.leave(pytestconfig, "drills: a steady stream of pods", table([*made.rows, made.total()]))
        api.delete(path)


@pytest.fixture
def quiet(release: Release, stream: Stream, pytestconfig: pytest.Config) -> Figures:
    """What the replicas told after a while in which nothing happened."""
    with stream.through("what was before", lasts=True):
        stream.flow(2)
    before = look(release)
    with stream.through("quiet", lasts=True):  # who shares the machine with us is not quiet
        stream.flow(QUIET_S)
    return _tell(release, pytestconfig, "quiet", before)


def _tell(release: Release, config: pytest.Config, what: str, before: Figures, *more: str) -> Figures:
    after = look(release)
    text = "\n".join([report(what, before, after), *(f"  {one}" for one in more)])
    LOG.info("%s", text)
    tables.leave(config, f"drills: {what}", text)
    return after


@pytest.mark.parametrize("cpu", [_LIMIT, *([None] if IS_LONG else [])])
def test_a_flood_of_the_ports(
    release: Release,
    stream: Stream,
    quiet: Figures,
    cpu: str | None,
    operator_image_tag: str,
    pytestconfig: pytest.Config,
) -> None:
    what = f"two pods flood the ports, with {cpu or 'all they get'} of a processor each"
    with flooders(release, operator_image_tag, idle=IDLE, cpu=cpu) as flood:
        wait_for("silent connections", lambda: flood.counts()["most"] >= 100)
        with stream.through(what, lasts=True):
            stream.flow(FLOOD_S)
            wait_for("the flood to have tried everything", lambda: _is_tried(flood.counts()))
        told = flood.counts()
    lines = (f"{count} {kind}" for kind, count in sorted(told.items()))
    since = _tell(release, pytestconfig, what, quiet, *lines) - quiet
    assert set(since.restarts.values()) == {0}
    if cpu and IS_LONG:  # in the normal run other tests take the processor, too
        assert within_ms(since.filters) <= FILTER_MS


def _is_tried(told: Mapping[str, int]) -> bool:
    """Return whether all that a flood must try was tried: a busy machine takes longer."""
    idle = sum(count for kind, count in told.items() if kind.startswith("idle")) + told["open"]
    bodies = sum(count for kind, count in told.items() if kind.startswith("body"))
    return idle >= (IDLE if IS_LONG else IDLE // 10) and bodies >= _BODIES


@pytest.mark.parametrize("policies", [*([drills.tame] if IS_LONG else []), drills.worst])
def test_an_author_of_policies(
    release: Release, stream: Stream, quiet: Figures, policies: Policies, pytestconfig: pytest.Config
) -> None:
    release.put("his", schedulerName=drills.SCHEDULER, filters=_FILTERS)
    release.ready("his", within="180s")
    release.api.create("/api/v1/namespaces", {"metadata": {"name": "author"}})
    said = Counter[str]()
    what = f"an author applies {policies.__name__} policies, and their pods"
    with stream.through("his scheduler begins", lasts=True):
        stream.flow(1)
    before = look(release)
    try:
        with stream.through(what, lasts=True):
            end = time.monotonic() + LASTS_S
            _apply(release, policies, said, "asked", turns=1, end=end - LASTS_S * 2 / 3)
            for hook in release.api.items(HOOKS):
                release.api.delete(f"{HOOKS}/{hook['metadata']['name']}")
            _apply(release, policies, said, "not asked", end=end)
            stream.flow(2)
        states = Counter(
            one["reason"]
            for policy in release.api.items(POLICIES)
            for one in policy.get("status", {}).get("conditions", [])
            if policy["spec"].get("schedulerName") == drills.SCHEDULER and one["type"] == "Compiled"
        )
        lines = (f"{kind}: {count}" for kind, count in [*sorted(said.items()), *sorted(states.items())])
        since = _tell(release, pytestconfig, what, before, *lines) - before
    finally:
        release.api.delete("/api/v1/namespaces/author/pods")
        release.api.delete("/api/v1/namespaces/author")
        release.remove(("his", *drills.worst(0)))
        release.install()
    with stream.through("after the author has gone", lasts=True):
        stream.flow(2)
    assert set(since.restarts.values()) == {0}
    if IS_LONG:
        assert not [policy for policy in since.slow if policy in ("pools", "others") and since.slow[policy]]
    assert said["not asked: stored"], said


def _apply(
    release: Release,
    policies: Policies,
    said: Counter[str],
    how: str,
    *,
    turns: int = 1_000_000,
    end: float = float("inf"),
) -> None:
    """Apply all policies, each followed by two pods for it, again and again."""
    pods = "/api/v1/namespaces/author/pods"
    for turn in itertools.islice(itertools.count(1 + (how == "not asked")), turns):
        for name, spec in policies(turn).items():
            due = time.monotonic() + PACE_S
            if due > end:
                return
            kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
            try:
                release.api.apply(f"{POLICIES}/{name}", {**kind, "metadata": {"name": name}, "spec": spec})
                said[f"{how}: stored"] += 1
            except ClusterError as error:
                said[f"{how}: refused {name}: {str(error)[:150]}"] += 1
            for at in range(2):
                release.api.delete(f"{pods}/{name}-{at}")
                with suppress(ClusterError):
                    release.api.create(pods, drills.pod(name, at))
                    said["pods"] += 1
            # A pace, which no condition ends: it holds the writes of both authors to the same rate.
            time.sleep(max(0.0, due - time.monotonic()))
