"""A leader in this process, with replicas that say what a test wants."""

import asyncio
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import kopf
import msgspec
from aiohttp import web
from generate.crds import installed_policy

from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.leader_certificates import OwnAuthority
from fairlead.control.loop.controller import leader_controller, now
from fairlead.control.loop.kopf_runtime import Runtime, session
from fairlead.control.loop.leader_context import LeaderContext, OperatorService
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.metrics import Metrics
from fairlead.pki.authority import Authority, current_leaf, read, server_hosts
from fairlead.pki.identities import AUTHORITY_SECRET, OPERATOR, SERVER
from fairlead.pki.issuing import Pair
from fairlead.pki.parsing import digest, read_certificate
from fairlead.pki.rotation import ReplicaTrust
from fairlead.pki.tls_context import load_pair
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import PolicyState, ReplicaState, encode
from support.kube.crd import POLICIES
from support.render.scheduler_bindings import bound_in
from testbed.fixtures import Cluster

SERVICE, SELECTOR = "fairlead", "app=the-operator"


@dataclass
class Stub:
    """A replica: it serves every policy that it is told of at once, unless a test says otherwise."""

    authority: Authority
    port: int = 0
    frozen: bool = False
    process: str = ""
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What other replicas say that this one does not, by their addresses."""
    policy_set: str = "x"
    has_rejected_pods: bool = False
    requests: int = 0
    """How often it was asked what it serves."""
    policies: dict[str, PolicyState] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    """The status that a path is answered with."""

    @cached_property
    def server(self) -> Pair:
        return current_leaf(
            self.authority, SERVER, "server", server_hosts(SERVICE, self.namespace, ADDRESSES), now(), None
        )

    namespace: str = ""

    def state(self, address: str = "") -> ReplicaState:
        trusted = self.authority.client_ca_bundle
        taken = ReplicaTrust(digest(trusted), read_certificate(self.server.certificate, [trusted]).issuer)
        state = ReplicaState(
            process=self.process,
            policy_set=self.policy_set,
            policies=dict(self.policies),
            authorities=taken.trusts,
            issuer=taken.issuer,
            has_rejected_pods=self.has_rejected_pods,
        )
        return msgspec.structs.replace(state, **self.others.get(address, {}))

    async def answer(self, request: web.Request) -> web.Response:
        while self.frozen:  # as one that was stopped: whoever asks gives up
            await asyncio.sleep(0.1)
        if request.path == "/state":
            self.requests += 1
            address = request.transport.get_extra_info("sockname")[0] if request.transport else ""
            return web.Response(body=encode(self.state(address)))
        await request.read()
        return web.Response(body=b"{}", status=self.fails.get(request.path, 200))


ADDRESSES = frozenset({"127.0.0.1"})
ANOTHER_ADDRESS = "127.0.0.2"
"""Address at which a second replica listens, if there is a pod with it."""


@dataclass
class LeaderSetup:
    """All that a test turns."""

    cluster: Cluster
    namespace: str
    stub: Stub
    operator: LeaderContext
    runtime: Runtime
    settings: OperatorSettings
    is_leader: bool = True
    broken: set[str] = field(default_factory=set)
    """Policies over which we stumble."""
    warns: dict[str, list[tuple[str, str, str]] | None] = field(default_factory=dict)
    """What lint warns of some policies; None: it is still looking."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when nothing of the leader goes on."""
    logins: list[Exception] = field(default_factory=list)
    """What kopf's next logins fail with."""
    kubeconfig: Path = Path()
    """Whose rights the leader has."""

    @property
    def drifted(self) -> list[str]:
        """The kinds of the objects whose drift was corrected."""
        return [kind for (kind,), count in self.operator.metrics.drift.values.items() for _ in range(int(count))]

    def warned(self, policy: Mapping[str, Any]) -> list[tuple[str, str, str]] | None:
        if policy["metadata"]["name"] in self.broken:
            raise ValueError("a fault of ours")
        return self.warns.get(policy["metadata"]["name"], [])

    async def login(self) -> kopf.AiohttpSession:
        if self.logins:
            raise self.logins.pop()
        return await session(from_kubeconfig([self.kubeconfig]))

    def restart(self, *faults: Exception) -> None:
        """As if another had become the leader; kopf's first logins fail with these."""
        self.end()
        self.over.clear()
        self.logins += faults
        self.runtime.start()

    def end(self) -> None:
        self.runtime.stop()
        assert self.over.wait(10), "it does not end"

    def apply(self, name: str, **spec: Any) -> None:
        """Create a policy, or give it another spec; the replica serves it."""
        body = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": name}}
        api = self.cluster.api
        if api.exists(f"{POLICIES}/{name}"):
            made = api.patch(f"{POLICIES}/{name}", {"spec": spec})
        else:
            made = api.create(POLICIES, {**body, "spec": spec})
        self.serve(made)

    def serve(self, policy: Mapping[str, Any], **state: Any) -> None:
        metadata, spec = policy["metadata"], policy["spec"]
        said = {"generation": str(metadata["generation"]), "serving": str(metadata["generation"]), "reason": "Compiled"}
        fields = {**said, "uid": metadata["uid"], "scheduler": spec["schedulerName"], "fails": True, **state}
        self.stub.policies[metadata["name"]] = PolicyState(**fields)

    def condition(self, name: str, kind: str = "Ready") -> tuple[str, str]:
        """Its status and its reason."""
        found = self.cluster.api.get(f"{POLICIES}/{name}").get("status", {}).get("conditions", [])
        return next(((one["status"], one["reason"]) for one in found if one["type"] == kind), ("", ""))


def context_of(authority: Authority, name: str) -> ssl.SSLContext:
    """A client of this name."""
    made = ssl.create_default_context(cadata=authority.server_ca_bundle.decode())
    pair = current_leaf(authority, name, "client", frozenset(), now(), None)
    load_pair(made, pair.certificate, pair.key)
    return made


@contextmanager
def ground(
    cluster: Cluster,
    namespace: str,
    settings: OperatorSettings | None = None,
    *,
    kubeconfig: Path | None = None,
    url: str = "",
) -> Iterator[LeaderSetup]:
    """A leader that works, with an administrator's rights, and whose schedulers call the replica; or as is said."""
    stub = Stub(asyncio.run(_authority(cluster, namespace)), namespace=namespace)
    make_replica_pod(cluster, namespace)
    with _serving(stub), bound_in(cluster.api, namespace):
        ground = LeaderSetup.__new__(LeaderSetup)
        operator = LeaderContext(
            client=lambda: Client(from_kubeconfig([ground.kubeconfig])),
            model=installed_policy(),
            settings=lambda: ground.settings,
            service=OperatorService(
                namespace=namespace,
                name=SERVICE,
                port=stub.port,
                admission_port=9443,
                selector=SELECTOR,
                url=url or f"https://127.0.0.1:{stub.port}",
            ),
            instance="test",
            authority=OwnAuthority(
                read=lambda: None,
                is_rotation_requested=lambda: False,
                context=lambda: context_of(stub.authority, OPERATOR),
            ),
            nodes=lambda: 1,
            is_leader=lambda: ground.is_leader,
            warnings=lambda policy, _: ground.warned(policy),
            metrics=LeaderMetrics(Metrics()),
        )
        over = threading.Event()
        runtime = Runtime(lambda: leader_controller(operator), lambda: ground.login(), namespace, over.set)
        LeaderSetup.__init__(ground, cluster, namespace, stub, operator, runtime, settings or OperatorSettings())
        ground.over, ground.kubeconfig = over, kubeconfig or cluster.kubeconfig
        runtime.start()
        try:
            yield ground
        finally:
            ground.end()


async def _authority(cluster: Cluster, namespace: str) -> Authority:
    async with Client(from_kubeconfig([cluster.kubeconfig])) as client:
        made = SchedulerCertificates(Secrets(client, namespace), AUTHORITY_SECRET, str, lambda _: {}, now)
        return read((await made.ensure()).data)


def make_replica_pod(cluster: Cluster, namespace: str, name: str = "fairlead-1", address: str = "127.0.0.1") -> None:
    """A pod that no node runs, with the address at which the stub listens."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"}
    cluster.api.create(path, {"metadata": {"name": name, "labels": {"app": "the-operator"}}, "spec": spec})
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready}
    cluster.api.patch(f"{path}/{name}/status", {"status": status})


@contextmanager
def _serving(stub: Stub) -> Iterator[None]:
    loop, begun = asyncio.new_event_loop(), threading.Event()

    async def begin() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", stub.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=stub.authority.client_ca_bundle.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        load_pair(context, stub.server.certificate, stub.server.key)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        stub.port = runner.addresses[0][1]
        await web.TCPSite(runner, ANOTHER_ADDRESS, stub.port, ssl_context=context).start()
        begun.set()
        return runner

    def run() -> None:
        runner = loop.run_until_complete(begin())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait(30)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
