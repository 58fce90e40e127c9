"""Kubeconfig files: made for our own clusters, with paths that hold from any directory."""

import base64
from pathlib import Path

import yaml

from testbed import cache
from testbed.certs import Authority, Pair


def write(path: Path, *, server: str, authority: Authority, user: str, pair: Pair) -> Path:
    """Write the kubeconfig of a user; the keys are inside, so that the file works wherever it is copied to."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority-data": _inline(authority.certificate)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _inline(pair.certificate), "client-key-data": _inline(pair.key)},
            }
        ],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        "current-context": "testbed",
    }
    cache.write(path, yaml.safe_dump(document, sort_keys=False), mode=0o600)
    return path


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
