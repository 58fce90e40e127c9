"""A replica beside a real API server, with certificates that others have made: the Secret says who is who."""

import http.client
import ssl
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead.control.loop.controller import now
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.pki.issuing import Pair, create_authority, issue_leaf
from fairlead.pki.tls_context import client_context
from fairlead.render.object_names import OPERATOR_SECRET, PREVIOUS_SECRET, ObjectNames
from fairlead.replica_state import PATH
from support.process.operating import HOST, Operating
from support.webhook import body
from testbed.api import wait_for
from testbed.fixtures import Cluster
from testbed.process import Component

LIFE = timedelta(days=30)


class Given(Operating):
    """A replica that shows what somebody else has signed, and believes whoever has signed it."""

    by: Pair
    callers: "list[Caller]"

    def signed(self, name: str) -> Pair:
        """As their authority gives it to anybody who asks."""
        return issue_leaf(self.by, name, "client", now(), LIFE)

    def put(self, secret: str, pair: Pair) -> None:  # type: ignore[override]
        """Have this in a Secret."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": self.by.certificate}
        data = {key: b64encode(value).decode() for key, value in files.items()}
        if self.cluster.api.exists(f"{path}/{secret}"):
            self.cluster.api.patch(f"{path}/{secret}", {"data": data})
        else:
            made = {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "data": data}
            self.cluster.api.create(path, made)

    def connect(self, pair: Pair) -> "Caller":
        self.callers.append(Caller(self.ports[0], client_context(self.by.certificate, pair.certificate, pair.key)))
        return self.callers[-1]

    def _component(self) -> Component:
        made = super()._component()
        server = issue_leaf(self.by, "fairlead", "server", now(), LIFE, [HOST])
        files = {"--tls-cert": server.certificate, "--tls-key": server.key, "--client-ca": self.by.certificate}
        for option, content in files.items():
            (self.folder / option.strip("-")).write_bytes(content)
        options = [f"{option}={self.folder / option.strip('-')}" for option in files]
        return replace(made, command=[*made.command, *options])


class Caller:
    """A connection that is kept while the other side keeps it."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.connection = http.client.HTTPSConnection(HOST, port, context=context, timeout=30)

    def call(self, path: str = "/filter") -> tuple[int, str]:
        sent = None if path == PATH else body(["a"])
        self.connection.request("GET" if sent is None else "POST", path, sent, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def replica(with_crd: Cluster, namespace: str, tmp_path: Path) -> Iterator[Given]:
    made = Given(with_crd, namespace, tmp_path, f"schedulers: [{{name: {namespace}}}]\ntls: {{mode: Provided}}\n")
    made.by, made.callers = create_authority("shared", now(), LIFE), []
    try:
        made.start()
        yield made
    finally:
        for one in made.callers:
            one.connection.close()
        made.kill()


def test_a_caller_is_known_by_what_is_in_the_secret_of_its_name(replica: Given) -> None:
    namespace, identity = replica.namespace, scheduler_identity(replica.namespace)
    secret, real, anybodys = (
        ObjectNames(namespace, namespace).certificate,
        replica.signed(identity),
        replica.signed(identity),
    )
    kept = replica.connect(real)
    status, said = kept.call()
    assert (status, f"it is not the certificate in Secret {namespace}/{secret}" in said) == (403, True)
    replica.put(secret, real)
    wait_for("the Secret to be seen", lambda: kept.call()[0] == 200)
    stranger = replica.connect(anybodys)
    assert stranger.call()[0] == 403
    assert 'webhook_refused_total{reason="another certificate"}' in replica.probe("metrics")[1]
    wait_for("it to say how many it knows", lambda: "[+] certificates: 1\n" in replica.probe("readyz")[1])

    replica.put(secret, renewed := replica.signed(identity))
    fresh = replica.connect(renewed)
    wait_for("the other one to be seen", lambda: fresh.call()[0] == 200)
    assert [one.call()[0] for one in (kept, replica.connect(real), replica.connect(renewed))] == [200, 200, 200]
    assert stranger.call()[0] == 403

    path = f"/api/v1/namespaces/{namespace}/secrets"
    wait_for(
        "what was there before to be written down", lambda: replica.cluster.api.exists(f"{path}/{PREVIOUS_SECRET}")
    )
    replica.kill()
    replica.start()
    kept, fresh, stranger = (replica.connect(pair) for pair in (real, renewed, anybodys))
    assert [one.call()[0] for one in (kept, fresh, stranger)] == [200, 200, 403]

    replica.cluster.api.delete(f"{path}/{secret}")
    wait_for("it to be forgotten", lambda: fresh.call()[0] == 403)
    assert kept.call()[0] == 403


def test_the_leader_is_known_so_too(replica: Given) -> None:
    real, anybodys = replica.signed(OPERATOR), replica.signed(OPERATOR)
    replica.put(OPERATOR_SECRET, real)
    leader = replica.connect(real)
    wait_for("the Secret to be seen", lambda: leader.call(PATH)[0] == 200)
    assert [replica.connect(anybodys).call(path)[0] for path in (PATH, "/filter")] == [403, 403]
