"""A replica of the operator where others make certificates: who calls shows what is in the Secret of his name."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from fairlead.kube.http.client import Client
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.pki.issuing import Pair, issue_leaf
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.render.object_names import ObjectNames
from fairlead.replica_state import PATH
from scripted.loop import in_loop
from scripted.server import Server
from support.process.standalone import World, node
from support.webhook import body
from support.webhook.tls import NOW, Connection, Ground, Received, connect

GPU, LONG = "gpu", "a" * 60
SETTINGS = f"schedulers: [{{name: {GPU}}}, {{name: {LONG}}}]\ntls: {{mode: Provided}}\n"


class Running:
    """One that runs, and the Secrets that there are."""

    def __init__(self, folder: Path) -> None:
        self.ground, self.apiserver = Ground(folder), World({"nodes": [node("a")]})
        self.operator: OperatorReplica
        self.server: Server
        self.opened: list[Connection] = []
        self.version = 0

    def signed(self, name: str) -> Pair:
        """By the authority that all believe."""
        return issue_leaf(self.ground.ca, name, "client", NOW, timedelta(days=30))

    async def put(self, secret: str, pair: Pair | None) -> None:
        """Have this in a Secret, or no Secret; once the replica has seen it."""
        held = self.apiserver.objects.setdefault("secrets", [])
        held[:] = [one for one in held if one["metadata"]["name"] != secret]
        self.version += 1
        if pair is not None:
            metadata = {"name": secret, "namespace": "x", "uid": secret, "resourceVersion": str(self.version)}
            data = {"tls.crt": b64encode(pair.certificate).decode(), "tls.key": b64encode(b"key").decode()}
            held.append({"metadata": metadata, "type": "kubernetes.io/tls", "data": data})
        self.operator.secrets.relist()
        await self.operator.secrets.wait_until_listed()

    async def call(self, pair: Pair, path: str = "/filter") -> Received:
        context = ssl.create_default_context(cadata=self.ground.ca.certificate.decode())
        context.load_cert_chain(*self.ground.write("caller", pair))
        self.opened.append(await connect(self.operator.replica.port, context))
        return await again(self.opened[-1], path)


async def again(connection: Connection, path: str = "/filter") -> Received:
    if path == PATH:
        return await connection.call(path, b"", "GET")
    return await connection.call(path, body(["a"]))


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    one, file = Running(folder), folder / "settings.yaml"
    file.write_text(SETTINGS)
    told = SettingsFile(file)
    told.reload()
    local = Address("127.0.0.1", 0)
    settings = OperateSettings(
        listen=local, probes=local, admission=local, tls=one.ground.files, settings=file, drain_s=0.0, namespace="x"
    )
    async with Server(one.apiserver.serve) as server, Client(server.login()) as client:
        one.server = server
        one.operator, stop = OperatorReplica(settings, client, told), asyncio.Event()
        task = asyncio.create_task(one.operator.replica.run(stop))
        try:
            while not (
                one.operator.replica.port
                and one.operator.core.mirror_feed.synced
                and one.operator.core.reloader.state is not None
            ):
                await asyncio.sleep(0.01)
            yield one
        finally:
            for connection in one.opened:
                await connection.close()
            stop.set()
            await task


def said(reply: Received) -> tuple[int, str]:
    return reply.status, reply.body.decode()


@in_loop
async def test_the_right_name_of_the_right_authority_is_not_enough(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        name = scheduler_identity(GPU)
        real, anybodys = one.signed(name), one.signed(name)
        secret = "kube-scheduler-gpu-tls"
        why = f"it is not the certificate in Secret x/{secret}"
        reason = f"the certificate of {name!r} may not call anything: {why}"
        for path in ("/filter", "/prioritize", "/bind"):
            assert said(await one.call(real, path)) == (403, reason)
        await one.put(secret, real)
        kept = one.opened[0]
        assert (await again(kept)).status == 200  # it may have come before the Secret
        assert [(await one.call(pair)).status for pair in (real, anybodys)] == [200, 403]
        exposed = one.operator.core.metrics.exposition().decode()
        assert 'fairlead_webhook_refused_total{reason="another certificate"} 4' in exposed
        assert one.operator.report().refused_connections == {"127.0.0.1": "another certificate"}
        await one.put("another", anybodys)
        assert (await one.call(anybodys)).status == 403
        assert (await one.call(one.signed(scheduler_identity("web")))).status == 403


@in_loop
async def test_nobody_else_is_the_operator(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        real, anybodys = one.signed(OPERATOR), one.signed(OPERATOR)
        await one.put("fairlead-operator-tls", real)
        for path in (PATH, "/filter"):
            assert [(await one.call(pair, path)).status for pair in (real, anybodys)] == [200, 403]


@in_loop
async def test_the_secret_of_a_long_name_is_found(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        real = one.signed(scheduler_identity(LONG))
        refused = said(await one.call(real))
        secret = refused[1].rpartition("/")[2]
        assert (refused[0], secret) == (403, ObjectNames(LONG, "x").certificate)
        await one.put(secret, real)
        assert (await one.call(real)).status == 200


@in_loop
async def test_a_renewal_fails_no_call_and_a_secret_that_is_deleted_ends_all(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        old, new = (one.signed(scheduler_identity(GPU)) for _ in range(2))
        secret = "kube-scheduler-gpu-tls"
        await one.put(secret, old)
        assert (await one.call(old)).status == 200
        kept = one.opened[-1]
        await one.put(secret, new)  # the scheduler's pod has it a minute later
        assert ((await again(kept)).status, (await one.call(old)).status, (await one.call(new)).status) == (200,) * 3
        await one.put(secret, None)
        assert [(await again(connection)).status for connection in (kept, one.opened[-1])] == [403, 403]


@in_loop
async def test_it_is_not_ready_before_it_knows_them(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert one.operator.replica.parts.reflectors["certificates"] is one.operator.secrets
        selectors = {each.query["fieldSelector"] for each in one.server.seen if each.path.endswith("/x/secrets")}
        assert selectors == {"type!=helm.sh/release.v1"}
