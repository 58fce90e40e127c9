"""Sources of values on a real API server: ConfigMaps as they come and go, and rights that are missing."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fairlead.kube.access.login import Login, from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, PollError
from fairlead.render.rbac import RbacRule, RoleGrant
from fairlead.webhook.data_sources.config_map_source import ConfigMapSource, DocumentState
from fairlead.webhook.data_sources.config_map_values import ValuesDocument
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from scripted.loop import in_loop
from support.kube.service_account import access_of, give, may, take
from testbed.api import Api, wait_for
from testbed.fixtures import Cluster

KEY = "values.json"
PRICES = ConfigMapPoll("prices", KEY, None)
ACCOUNT = "reader"
GRANTS = [RoleGrant("own", (RbacRule("those of the namespace", "", ("configmaps",), ("list", "watch")),))]


@pytest.fixture
def account(control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Login]:
    """Who may read the ConfigMaps of the namespace, and nothing else."""
    api = control_plane.api
    api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    give(api, namespace, ACCOUNT, GRANTS)
    asked = {"verb": "watch", "group": "", "resource": "configmaps", "name": "prices", "namespace": namespace}
    wait_for("the role to be known", lambda: may(control_plane, namespace, ACCOUNT, asked))
    yield access_of(control_plane, namespace, ACCOUNT, tmp_path)
    take(api, namespace, ACCOUNT, GRANTS)


class Prices:
    """The ConfigMap, as its owner writes it."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, f"/api/v1/namespaces/{namespace}/configmaps"

    async def write(self, text: str, key: str = KEY) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices"}, "data": {key: text}}
        await asyncio.to_thread(self._api.apply, f"{self._namespace}/prices", body)

    async def values(self, **values: object) -> None:
        await self.write(json.dumps({"at": "2026-01-31T08:00:00Z", "values": values}))

    async def delete(self) -> None:
        await asyncio.to_thread(self._api.delete, f"{self._namespace}/prices")


class Following:
    """A source that runs, and a way to wait for what it says."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.changes = 0
        self._told = asyncio.Event()
        self.source = ConfigMapSource(client, namespace, self._tell)

    async def until(self, wanted: Callable[[DocumentState], object], poll: ConfigMapPoll = PRICES) -> DocumentState:
        while not wanted(found := self.source.state(poll)):
            self._told.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 0.1)
        return found

    def _tell(self, name: str) -> None:
        self.changes += 1
        self._told.set()


@asynccontextmanager
async def following(access: Login, namespace: str) -> AsyncIterator[Following]:
    async with Client(access) as client:
        one = Following(client, namespace)
        running = asyncio.create_task(one.source.run())
        yield one
        running.cancel()
        await asyncio.wait({running})


def _document(**values: float) -> ValuesDocument:
    return ValuesDocument(1_769_846_400_000_000_000, values, frozenset())


@in_loop
async def test_a_config_map_from_its_beginning_to_its_end(
    account: Login, control_plane: Cluster, namespace: str
) -> None:
    prices = Prices(control_plane.api, namespace)
    async with following(account, namespace) as one:
        one.source.want([PRICES])
        found = await one.until(lambda state: state.is_answered)
        assert found.error.startswith(f"ConfigMap {namespace}/prices does not exist: create it with the key {KEY}")
        await prices.values(a=1)
        found = await one.until(lambda state: state.document)
        assert found == DocumentState(_document(a=1.0), "", is_answered=True)
        await prices.values(a=2, b="much")
        found = await one.until(lambda state: state.document and state.document.values == {"a": 2.0})
        assert found.document
        assert found.document.no_number == {"b"}
        await prices.write("{")
        broken = await one.until(lambda state: state.error)
        assert broken.document == found.document
        assert f"ConfigMap {namespace}/prices, key {KEY}: the document is not a JSON object" in broken.error
        await prices.write("{}", key="other.json")
        await one.until(lambda state: f"has no key {KEY}: add the key" in state.error)
        await prices.values(a=3)
        assert (await one.until(lambda state: not state.error)).document == _document(a=3.0)
        before = one.changes
        await prices.delete()
        gone = await one.until(lambda state: state.error)
        assert gone.document == _document(a=3.0)
        assert gone.error == (
            f"ConfigMap {namespace}/prices was deleted, and its last values are kept with their time: create it again"
        )
        await prices.values(a=4)
        assert (await one.until(lambda state: not state.error)).document == _document(a=4.0)
        assert one.changes == before + 2


@in_loop
async def test_without_the_right_to_list_config_maps_it_is_named(account: Login) -> None:
    async with following(account, "default") as one:
        one.source.want([PRICES])
        refused = await one.until(lambda state: state.error)
        assert not refused.is_answered
        assert refused.error.startswith("list configmaps default: 403 Forbidden: ")
        assert refused.error.endswith('lacks the rule {apiGroups: [""], resources: [configmaps], verbs: [list]}')


async def _failed_poll(access: Login) -> str:
    async with Client(access) as client:
        with pytest.raises(PollError) as error:
            await NodeMetricsSource(client, Nodes()).read([NodeMetricsPoll("cpu", "Base", 30)], within_s=5)
    return str(error.value)


@in_loop
async def test_without_a_metrics_api_the_poll_says_what_to_install(control_plane: Cluster) -> None:
    assert (await _failed_poll(from_kubeconfig([control_plane.kubeconfig]))).startswith(
        "there is no metrics API: the APIService v1beta1.metrics.k8s.io is missing or serves no nodes; install"
    )


@in_loop
async def test_without_the_right_the_poll_names_it(account: Login) -> None:
    said = await _failed_poll(account)
    assert said.startswith("the permission to list nodes.metrics.k8s.io is missing: ")
    assert said.endswith('the rule {apiGroups: ["metrics.k8s.io"], resources: [nodes], verbs: [list]}')
