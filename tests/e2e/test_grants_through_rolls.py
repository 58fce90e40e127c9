"""Twenty pods a second get shares of cards while the operator and its scheduler roll, and while the leader is killed.

No card holds more than it has, no pod is lost, and a table says how long there was no grant.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager

import pytest

from support.chart.chart import NAMESPACE
from support.chart.release import OPERATOR, PODS, SCHEDULER, Release, processes, released
from support.grants.card_watch import CardWatch
from support.stream import VALUES, Follow, Stream, table
from testbed import tables
from testbed.api import Api, wait_for
from testbed.fixtures import Cluster

_NAMESPACE = "shares"
_NODES, _CARDS, _SIZE = 20, 8, 3
MEM, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
_SHARE = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}
_POOL = {"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels['pool']"}
_SCORES = [{"name": "fill-cards", "deviceShare": {"name": "gpu", "objective": "Pack"}}]
_POLICY: Mapping[str, object] = {"filters": [_POOL], "binding": {"deviceShare": [_SHARE]}}
_AGAIN = re.compile(rf'"Error scheduling pod; retrying".* pod="{_NAMESPACE}/([^"]+)"')


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    cards = {MEM: str(_CARDS * _SIZE), COUNT: str(_CARDS)}
    with released(cluster, operator_image_tag, _NODES, cards) as made:
        made.install(**VALUES)
        yield made


@pytest.fixture(scope="module")
def cards(release: Release) -> Iterator[CardWatch]:
    api, path = release.cluster.api, f"/api/v1/namespaces/{_NAMESPACE}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    wait_for("its service account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    with closing(Api(release.cluster.kubeconfig)) as own, CardWatch(own, f"{path}/pods", MEM, _SIZE) as watch:
        yield watch
    api.delete(path)


@pytest.fixture(scope="module")
def stream(release: Release, cards: CardWatch, pytestconfig: pytest.Config) -> Iterator[Stream]:
    release.put("shares", **_POLICY)
    release.ready("shares", within="180s")
    with closing(Api(release.cluster.kubeconfig)) as api, closing(Follow(release.cluster.audit_log)) as log:
        made = Stream(
            api=api,
            namespace=_NAMESPACE,
            log=log,
            nodes={node: "ab"[number % 2] for number, node in enumerate(release.nodes)},
            schedulers={"fairlead": {"a": "a", "b": "b"}},
            asks={MEM: "1"},
        )
        made.begin()
        made.flow(3)
        yield made
        made.end()
        said = f"{table([*made.rows, made.total()])}\nthe most that a card of {_SIZE} held: {cards.most}"
        tables.leave(pytestconfig, "shares of cards through rolls", said)


def _retries(release: Release) -> Mapping[str, int]:
    """How often schedulers have tried each pod in vain."""
    found = Counter[str]()
    for pod in release.pods(SCHEDULER):
        found.update(_AGAIN.findall(release.api.text(f"{PODS}/{pod['metadata']['name']}/log")))
    return found


Through = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def through(release: Release, stream: Stream, cards: CardWatch, pytestconfig: pytest.Config) -> Through:
    """What happens while pods come, and what must be so after it."""
    return lambda what: _through(what, release, stream, cards, pytestconfig)


@contextmanager
def _through(what: str, release: Release, stream: Stream, cards: CardWatch, config: pytest.Config) -> Iterator[None]:
    begun = time.monotonic()
    with stream.through(what, provoked=lambda: _retries(release)):
        yield
        stream.flow(3)
    tables.leave(
        config,
        f"shares of cards while {what}",
        f"the longest time without a grant: {stream.longest_wait_s(begun):.2f} s",
    )
    last = release.api.get(stream.path, limit="1")["metadata"]["resourceVersion"]
    wait_for("the watch to have seen all", lambda: cards.reached(last) or None)
    assert cards.overbooked == 0
    assert cards.without_grant == 0


def test_operator_rolls(release: Release, through: Through) -> None:
    old = release.uids(OPERATOR)
    with through("the operator rolls"):
        release.kubectl("rollout", "restart", "deployment/fairlead", "-n", NAMESPACE)
        release.runs(2, but=old)


def test_scheduler_rolls(release: Release, through: Through) -> None:
    old = release.uids(SCHEDULER)
    with through("the scheduler rolls"):
        release.put("shares", **_POLICY, scores=_SCORES)
        wait_for("the old ones to be gone", lambda: not old & release.uids(SCHEDULER), timeout_s=180)
        release.ready("shares", within="180s")


def test_leader_killed(release: Release, through: Through) -> None:
    leader = release.leader()
    with through("the leader is killed"):
        for one in processes(leader):
            one.kill()
        release.runs(2)
        release.ready("shares")
