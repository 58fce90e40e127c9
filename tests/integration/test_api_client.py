"""The client and the reflector on a real API server."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from time import time_ns
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import urllib3
import yaml

from fairlead.kube.access.login import Login, from_kubeconfig, log_in
from fairlead.kube.errors import ConflictError, ForbiddenError, NotFoundError, RequestError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import NODES, PODS, ObjectRef, Page, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_status import Relist
from fairlead.kube.watch.store import Key, ObjectVersion, PartialObject, partial_object
from fairlead.mirror.mirror import Mirror
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from scripted.loop import in_loop
from testbed import layout as layouts
from testbed import process
from testbed.api import Api, wait_for
from testbed.fixtures import Cluster

Object = dict[str, Any]
CONFIG_MAPS = ObjectRef(Resource("", "v1", "configmaps"))
anything = msgspec.json.decode


@pytest.fixture
def access(control_plane: Cluster) -> Login:
    return from_kubeconfig([control_plane.kubeconfig])


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@in_loop
async def test_an_object_from_its_beginning_to_its_end(access: Login, namespace: str) -> None:
    some = CONFIG_MAPS.named(namespace, "some")
    async with Client(access) as client:
        made = await client.create(CONFIG_MAPS.named(namespace, ""), config_map("some", a="1"), anything)
        with pytest.raises(ConflictError) as error:
            await client.create(CONFIG_MAPS.named(namespace, ""), config_map("some"), anything)
        assert error.value.exists
        changed = await client.replace(some, made | {"data": {"a": "2"}}, anything)
        with pytest.raises(ConflictError, match="the object has been modified") as error:
            await client.replace(some, made | {"data": {"a": "3"}}, anything)
        assert not error.value.exists
        await client.merge(some, {"data": {"b": "1"}}, anything)
        assert (await client.get(some, anything))["data"] == {"a": "2", "b": "1"}
        with pytest.raises(ConflictError):
            await client.delete(some, uid="another")
        await client.delete(some, uid=changed["metadata"]["uid"])
        with pytest.raises(
            NotFoundError, match=rf'^get configmaps {namespace}/some: 404 NotFound: configmaps "some" not'
        ):
            await client.get(some, anything)


@in_loop
async def test_what_is_applied_has_owners(access: Login, namespace: str) -> None:
    some = CONFIG_MAPS.named(namespace, "some")
    async with Client(access) as client:
        first = await client.apply(some, config_map("some", a="1"), anything, manager="fairlead")
        again = await client.apply(some, config_map("some", a="1"), anything, manager="fairlead")
        assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
        with pytest.raises(ConflictError, match=r'conflict with "fairlead": .data.a'):
            await client.apply(some, config_map("some", a="2"), anything, manager="other")
        taken = await client.apply(some, config_map("some", a="2"), anything, manager="other", force=True)
        assert taken["data"] == {"a": "2"}


@in_loop
async def test_the_status_is_written_by_merge_and_by_apply(access: Login, control_plane: Cluster) -> None:
    node = NODES.named("", "some-node")
    status = NODES.named("", "some-node", "status")
    async with Client(access) as client:
        await client.create(NODES, {"metadata": {"name": "some-node"}}, anything)
        try:
            await client.merge(status, {"status": {"capacity": {"cpu": "3"}}}, anything)
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "some-node"}}
            addresses = [{"type": "Hostname", "address": "a"}]
            applied = body | {"status": {"addresses": addresses}}
            got = await client.apply(status, applied, anything, manager="fairlead")
            assert got["status"]["capacity"] == {"cpu": "3"}
            assert got["status"]["addresses"] == addresses
        finally:
            await client.delete(node)


def pod(name: str) -> Object:
    containers = [{"name": "a", "image": "none"}]
    spec = {"schedulerName": "nobody", "containers": containers, "automountServiceAccountToken": False}
    return {"metadata": {"name": name}, "spec": spec}


def binding(name: str) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": "some-node"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def _has_account(api: Api, namespace: str) -> None:
    """Without its service account no pod can be made in a namespace."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(path))


@in_loop
async def test_a_pod_is_bound_once(access: Login, control_plane: Cluster, namespace: str) -> None:
    await asyncio.to_thread(_has_account, control_plane.api, namespace)
    async with Client(access) as client:
        await client.create(PODS.named(namespace, ""), pod("some"), anything)
        where = PODS.named(namespace, "some", "binding")
        assert anything(await client.post(where, binding("some"), within_s=10))["status"] == "Success"
        assert (await client.get(PODS.named(namespace, "some"), anything))["spec"]["nodeName"] == "some-node"
        with pytest.raises(ConflictError, match="pod some is already assigned to node"):
            await client.post(where, binding("some"), within_s=10)


@in_loop
async def test_a_pod_may_ask_for_more_than_a_float_holds(access: Login, namespace: str) -> None:
    wanted = {"requests": {"cpu": "1e309", "memory": "1" * 400}}
    spec = {"nodeName": "nobody", "containers": [{"name": "c", "image": "x", "resources": wanted}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"}, "spec": spec}
    mirror = Mirror(time_ns)
    async with Client(access) as client:
        await client.create(PODS.named(namespace, ""), body, anything)
        watching = MirrorFeed(client, mirror)
        await watching.set_interest((), ())
        running = asyncio.create_task(watching.run())
        while not watching.synced and not running.done():
            await asyncio.sleep(0.01)
        found = mirror.placed_sink.objects[namespace, "huge"]
        assert {found.request.amounts[name] for name in ("cpu", "memory")} == {float((1 << 63) - 1)}
        running.cancel()
        await asyncio.wait({running})
        await client.delete(PODS.named(namespace, "huge"))


@in_loop
async def test_a_list_comes_in_pages(access: Login, namespace: str) -> None:
    here = CONFIG_MAPS.named(namespace, "")
    pages = msgspec.json.Decoder(Page[PartialObject]).decode
    async with Client(access) as client:
        for number in range(5):
            await client.create(here, config_map(f"c{number}"), anything)
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
        got = [one async for one in client.pages(here, pages, query=query, limit=2)]
        assert [[one.metadata.name for one in page.items or ()] for page in got] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
        assert len({page.metadata.resource_version for page in got}) == 1


@pytest.fixture
def account(control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Login]:
    """As a pod of a service account that has no rights sees the API server."""
    api = control_plane.api
    api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "weak"}})
    config = yaml.safe_load(control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(msgspec.convert(config["certificate-authority-data"], bytes))
    (tmp_path / "token").write_text(_token(api, namespace))
    (tmp_path / "namespace").write_text(namespace)
    address = urlsplit(config["server"])
    environment = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    yield log_in(environment=environment, service_account=tmp_path)
    for kind in ("clusterroles", "clusterrolebindings"):
        api.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}/{namespace}")


def _token(api: Api, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/weak/token"
    return str(api.create(path, {"spec": {"expirationSeconds": 600}})["status"]["token"])


def _grant(api: Api, namespace: str, rules: list[Object]) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": namespace}}
    api.apply(f"{rbac}/clusterroles/{namespace}", role | {"rules": rules})
    subject = {"kind": "ServiceAccount", "name": "weak", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    bound = {"subjects": [subject], "roleRef": reference, "metadata": {"name": namespace}}
    api.apply(
        f"{rbac}/clusterrolebindings/{namespace}",
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", **bound},
    )


@in_loop
async def test_the_rule_that_an_error_names_is_the_one_that_is_missing(
    account: Login, control_plane: Cluster, namespace: str
) -> None:
    await asyncio.to_thread(_has_account, control_plane.api, namespace)
    control_plane.api.create(f"/api/v1/namespaces/{namespace}/pods", pod("some"))
    rules: list[Object] = []
    told: list[str] = []
    async with Client(account) as client:

        async def do_all() -> None:
            await client.get(NODES, anything)
            async with aclosing(client.watch(PODS, {"timeoutSeconds": "1"})) as lines:
                await anext(lines)
            config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
            await client.apply(CONFIG_MAPS.named(namespace, "x"), config, anything, manager="m")
            await client.post(PODS.named(namespace, "some", "binding"), binding("some"), within_s=10)

        while True:
            try:
                await do_all()
                break
            except ForbiddenError as error:
                told.append(str(error))
                rules.append(yaml.safe_load(told[-1].partition("lacks the rule ")[2]))
                if rules.count(rules[-1]) > 1:
                    pytest.fail(f"it was granted, and is missing still: {error}")
                await asyncio.to_thread(_grant, control_plane.api, namespace, rules)
                # the API server's own authorizer learns of a role by watching, too
                await asyncio.to_thread(
                    wait_for, "the role to be known", lambda: _may(control_plane.api, namespace, rules[-1])
                )
    assert told[-1].startswith(f"create pods/binding {namespace}/some: 403 Forbidden: ")
    assert [rule["verbs"] for rule in rules] == [["list"], ["watch"], ["patch"], ["create"], ["create"]]


def _may(api: Api, namespace: str, rule: Object) -> bool:
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource, "verb": rule["verbs"][0]}
    user = f"system:serviceaccount:{namespace}:weak"
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return bool(api.create(path, kind | review)["status"]["allowed"])


def _who(client: Client) -> Any:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return client.create(ObjectRef(Resource("authentication.k8s.io", "v1", "selfsubjectreviews")), review, anything)


@in_loop
async def test_a_plugin_is_asked_again_when_what_it_said_was_refused(
    account: Login, control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"}
    for name, token in (("1", "no good"), ("2", (tmp_path / "token").read_text())):
        (tmp_path / name).write_bytes(msgspec.json.encode(answer | {"status": {"token": token}}))
    script = tmp_path / "plugin"
    script.write_text('#!/bin/sh\ncd "$(dirname "$0")"\necho >> calls\ncat "$(wc -l < calls | tr -d " ")"\n')
    script.chmod(0o755)
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    way = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    document["users"][0]["user"] = {"exec": way}
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(document))
    async with Client(from_kubeconfig([file])) as client:
        for _ in range(2):
            user = (await _who(client))["status"]["userInfo"]["username"]
            assert user == f"system:serviceaccount:{namespace}:weak"
    assert (tmp_path / "calls").read_text().count("\n") == 2


@in_loop
async def test_who_is_unknown_is_told_so(account: Login, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("no good")
    async with Client(account) as client:
        with pytest.raises(RequestError, match=r"^create selfsubjectreviews.authentication.k8s.io: 401 Unauthorized"):
            await _who(client)


class _Mirror:
    """What there is, by name."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.told = asyncio.Event()

    def begin(self) -> None:
        pass

    def put(self, item: PartialObject) -> None:
        self.names.add(item.metadata.name)
        self.told.set()

    def remove(self, key: Key) -> None:
        self.names.remove(key[1])
        self.told.set()

    def end(self) -> None:
        self.told.set()

    async def until(self, *names: str) -> None:
        while self.names != {*names}:
            self.told.clear()
            await self.told.wait()


def _die_and_rise(plane: Cluster) -> None:
    found = process.find(plane.folder, "kube-apiserver")
    assert found
    process.kill([found])
    plane.provider.up()


def _forget(plane: Cluster) -> None:
    """Make the store forget all versions but the last."""
    layout = layouts.load(plane.provider.cluster)
    assert layout
    version = plane.api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
    url = f"http://127.0.0.1:{layout.etcd_port}/v3/kv/compaction"
    answer = urllib3.request("POST", url, json={"revision": version, "physical": True})
    assert answer.status == 200, answer.data


@in_loop
async def test_what_is_held_is_what_there_is_after_the_api_server_has_died(
    access: Login, control_plane: Cluster, namespace: str
) -> None:
    here = CONFIG_MAPS.named(namespace, "")
    may_go_on = asyncio.Event()
    may_go_on.set()

    async def sleep(seconds: float) -> None:
        """Waits are short, but not over before the test says so; silence lasts as long as it does."""
        await asyncio.sleep(seconds if seconds > 60 else min(seconds, 0.1))
        await may_go_on.wait()

    clock = Clock(sleep=sleep)
    async with Client(access) as client, Client(access, clock=clock) as watching:
        mirror = _Mirror()
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
        reflector = Reflector(watching, here, decode=partial_object.decode, sink=mirror, query=query, clock=clock)
        running = asyncio.create_task(reflector.run())

        async def make(name: str) -> None:
            await client.create(here, config_map(name), anything)

        for name in ("a", "b"):
            await make(name)
        await mirror.until("a", "b")
        await make("c")
        await client.delete(here.named(namespace, "a"))
        await mirror.until("b", "c")

        await asyncio.to_thread(_die_and_rise, control_plane)
        await make("d")
        await mirror.until("b", "c", "d")
        assert reflector.state.failures["unreachable"], "it has noticed that the API server was away"
        # An API server that has just started mostly knows the version that was watched from, and may have it expired.
        expired = reflector.state.relists[Relist.EXPIRED]
        assert expired <= 1
        assert reflector.state.relists == Counter({Relist.START: 1, Relist.EXPIRED: expired})

        may_go_on.clear()
        await asyncio.to_thread(_die_and_rise, control_plane)
        await client.delete(here.named(namespace, "b"))
        await client.delete(here.named(namespace, "c"))
        await make("c")
        await asyncio.to_thread(_forget, control_plane)
        await asyncio.to_thread(_die_and_rise, control_plane)
        may_go_on.set()
        await mirror.until("c", "d")
        assert reflector.state.relists == {Relist.START: 1, Relist.EXPIRED: expired + 1}

        assert await reflector.check() == 0
        held: Any = reflector.objects
        held[namespace, "d"] = ObjectVersion("another", "1")
        assert await reflector.check() == 1
        await mirror.until("c", "d")
        while not reflector.state.relists[Relist.DIFFERS] or reflector.objects[namespace, "d"].uid == "another":
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
