"""A TLS server that says whose certificate it was shown, and the kubeconfig that leads to it."""

import base64
import ssl
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from fairlead.kube.access.login import Login, from_kubeconfig
from scripted.server import Server, Step
from testbed.certs import Authority, Pair

Object = dict[str, Any]


def caller(request: web.BaseRequest) -> str:
    """Return the name in the certificate of the caller; empty without one."""
    assert request.transport
    shown = request.transport.get_extra_info("peercert") or {}
    names = {key: value for part in shown.get("subject", ()) for key, value in part}
    return str(names.get("commonName", ""))


async def whoami(request: web.BaseRequest) -> web.StreamResponse:
    """Says whose certificate was shown."""
    return web.json_response(caller(request))


def serving(authority: Authority, *hosts: str, handler: Step = whoami) -> Server:
    """Return a server with a certificate for these hosts, which asks for one of the caller."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    pair = authority.issue("server-" + "-".join(hosts), "server", hosts=hosts)
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as Go's servers; Python's are strict since 3.13
    return Server(handler, context)


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def access(folder: Path, server: str, cluster: Object, user: Object | None = None) -> Login:
    """Through a kubeconfig, as everything."""
    file = folder / "config"
    document = {
        "clusters": [{"name": "x", "cluster": {"server": server} | cluster}],
        "users": [{"name": "x", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(document))
    return from_kubeconfig([file])


def pair_as_data(pair: Pair) -> Object:
    return {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}


def pair_as_files(pair: Pair) -> Object:
    return {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
