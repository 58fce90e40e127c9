"""A weaker mode is obeyed by every replica at once, whatever else is wrong with the policy or being compiled."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairlead.pki.identities import scheduler_identity
from fairlead.replica_state import ReplicaState
from support.kube.crd import POLICIES, let_all_go, policies_served
from support.process.operating import Operating
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes

OFF_S = 1.0
"""How long it may take until nothing of a disabled policy is applied."""
BROKEN = [{"name": "pool", "expression": "node.metadata.lables['pool'] == 'ours'"}]


def only(node: str) -> list[Object]:
    return [{"name": "only", "expression": f"node.metadata.name == '{node}'", "reason": "another one"}]


def long(number: int) -> list[Object]:
    """Rules that take a good part of the two seconds that a policy may take."""
    terms = [f"node.metadata.labels['{number}x{at}'] == 'a'" for at in range(60)]
    return [{"name": f"f{at}", "expression": " || ".join([*terms, f"{at} > 1"])} for at in range(16)]


@pytest.fixture(scope="module")
def crd(control_plane: Cluster) -> Iterator[None]:
    with policies_served(control_plane.api):
        yield


@pytest.fixture
def replicas(crd: None, ground: Cluster, namespace: str, tmp_path: Path) -> Iterator[list[Operating]]:
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        made.append(Operating(ground, namespace, folder))
    try:
        for one in made:
            one.settings = f"schedulers: [{{name: {namespace}}}]"
            one.start()
        yield made
    finally:
        for one in made:
            one.kill()
        let_all_go(ground.api)


def passing(one: Operating, nodes: list[str]) -> Callable[[], list[str]]:
    """Return a function that asks a replica which nodes pass."""
    context = one.context(scheduler_identity(one.namespace))
    spec = {"schedulerName": one.namespace}
    pod = {"metadata": {"name": "x", "namespace": "default", "uid": "u"}, "spec": spec}
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes})

    def ask() -> list[str]:
        connection = http.client.HTTPSConnection(one.host, one.ports[0], context=context, timeout=10)
        with closing(connection):
            connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer["NodeNames"] or []

    return ask


def took(ask: Callable[[], list[str]], want: list[str], since: float) -> float:
    """Return how long after `since` a replica passed these nodes."""
    wait_for("the nodes to pass", lambda: ask() == want, every_s=0.01)
    return time.monotonic() - since


def edit(cluster: Cluster, name: str, **spec: Any) -> None:
    cluster.api.patch(f"{POLICIES}/{name}", {"spec": spec})


def create(cluster: Cluster, name: str, scheduler: str, filters: list[Object]) -> None:
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": name}}
    cluster.api.create(POLICIES, {**kind, "spec": {"schedulerName": scheduler, "filters": filters}})


def test_a_policy_that_does_not_compile_is_turned_off_while_others_are_compiled(
    replicas: list[Operating], ground: Cluster, kwok_nodes: MakeNodes
) -> None:
    first, *_ = replicas
    nodes = kwok_nodes(2)
    asks = [passing(one, nodes) for one in replicas]
    first.put("pool", filters=only(nodes[0]))
    for ask in asks:
        wait_for("the rule to serve", lambda ask=ask: ask() == nodes[:1])  # type: ignore[misc]
    first.put("pool", filters=BROKEN)
    assert [ask() for ask in asks] == [nodes[:1], nodes[:1]], "the last good generation serves"

    for number in range(6):
        create(ground, f"long-{number}", "others", long(number))
    since = time.monotonic()
    edit(ground, "pool", mode="Disabled")
    with ThreadPoolExecutor(len(asks)) as pool:
        seconds = [one.result() for one in [pool.submit(took, ask, nodes, since) for ask in asks]]
    compiling = [
        f"long-{number}" for number in range(6) for one in replicas if f"long-{number}" not in one.state().policies
    ]
    assert max(seconds) < OFF_S, f"off after {seconds} s"
    assert compiling, "nothing was being compiled any more: the test has to make longer policies"

    for one in replicas:
        said = one.until("the edit to be known", is_off).policies["pool"]
        assert (said.generation, said.serving, said.reason, said.fails) == ("3", "1", "NotCompiled", False)
        assert (
            "policy: pool: generation 3 does not compile, it is disabled, and no rule of it is applied"
            in (one.probe("readyz")[1])
        )
    first.kill()
    first.start()
    assert passing(first, nodes)() == nodes, "also after a restart"
    first.until("the edit to be known", is_off)

    edit(ground, "pool", mode="Enforce")
    for ask in (passing(one, nodes) for one in replicas):
        wait_for("the last good generation to serve again", lambda ask=ask: ask() == nodes[:1])  # type: ignore[misc]

    since = time.monotonic()
    edit(ground, "pool", mode="Shadow")
    assert max(took(passing(one, nodes), nodes, since) for one in replicas) < OFF_S
    said = first.until("the edit to be known", lambda state: state.policies["pool"].mode == "Shadow").policies["pool"]
    assert (said.serving, said.reason, said.fails) == ("1", "NotCompiled", False)
    text = "policy: pool: generation 5 does not compile, it is in shadow, and no rule of it decides"
    assert text in first.probe("readyz")[1]


def is_off(state: ReplicaState) -> bool:
    one = state.policies.get("pool")
    return one is not None and one.generation == "3" and one.mode == "Disabled"


@pytest.mark.parametrize("mode", ["Disabled", "Shadow"])
def test_pods_of_a_policy_that_never_compiled_are_refused_no_more(
    mode: str, replicas: list[Operating], ground: Cluster, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(2)
    asks = [passing(one, nodes) for one in replicas]
    create(ground, "pool", scheduler := replicas[0].namespace, BROKEN)
    for ask in asks:
        wait_for(f"pods of {scheduler} to be refused", lambda ask=ask: ask() == [])  # type: ignore[misc]
    since = time.monotonic()
    edit(ground, "pool", mode=mode)
    assert max(took(ask, nodes, since) for ask in asks) < OFF_S
