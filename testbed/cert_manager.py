"""cert-manager's controllers and its CA injector on this machine, beside a local cluster.

They are the ones of its module, in a small program of our own: its programs are modules that cannot be dependencies.
Its admission webhook, which refuses and defaults, does not run.
"""

from collections.abc import Iterator
from typing import Final

import yaml

from testbed import build, go_modules, process
from testbed.api import Api, Object, wait_for
from testbed.layout import Layout
from testbed.process import Component
from testbed.supervisor import Supervisor
from testbed.versions import MODULES, program

NAME: Final = "cert-manager"
ISSUER: Final = "cluster-ca"
"""A cluster issuer that signs with a certificate of its own, as cert-manager's own documentation sets it up."""
CERTIFICATES: Final = "/apis/cert-manager.io/v1/namespaces/{namespace}/certificates"
_MODULE: Final = "github.com/cert-manager/cert-manager"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLUSTER_ISSUERS: Final = "/apis/cert-manager.io/v1/clusterissuers"
_AUTHORITY: Final = "cluster-authority"
_READY_WITHIN_S: Final = 60.0


class CertManager:
    """The cert-manager of a cluster."""

    def __init__(self, layout: Layout, api: Api) -> None:
        self._layout, self._api = layout, api
        self._home = f"/api/v1/namespaces/{NAME}"

    def up(self) -> None:
        """Start it, and wait until its issuer can sign."""
        executable = build.build([program(NAME)])[NAME]
        for definition in _definitions():
            self._api.apply(f"{_DEFINITIONS}/{definition['metadata']['name']}", definition)
        for path in (_CLUSTER_ISSUERS, CERTIFICATES.format(namespace=NAME)):
            wait_for(f"{path} to be served", lambda path=path: self._api.exists(path))  # type: ignore[misc]
        self._api.apply(self._home, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
        command = [
            str(executable),
            f"-kubeconfig={self._layout.kubeconfig}",
            f"-cluster-resource-namespace={NAME}",
        ]
        log = process.log_of(self._layout.folder, NAME)
        Supervisor(self._layout.folder, list).ensure(Component(NAME, command), log.exists, within_s=_READY_WITHIN_S)
        for path, body in _issuers().items():
            self._api.apply(path, body)
        issuer = f"{_CLUSTER_ISSUERS}/{ISSUER}"
        wait_for("the issuer", lambda: is_ready(self._api.get(issuer)), timeout_s=_READY_WITHIN_S)

    def renew(self, namespace: str, certificate: str) -> None:
        """Have a certificate issued anew now, as `cmctl renew` does."""
        path = f"{CERTIFICATES.format(namespace=namespace)}/{certificate}"
        found = self._api.get(path)
        others = [one for one in found["status"]["conditions"] if one["type"] != "Issuing"]
        issuing = {
            "type": "Issuing",
            "status": "True",
            "reason": "ManuallyTriggered",
            "message": "Certificate re-issuance manually triggered",
            "observedGeneration": found["metadata"]["generation"],
        }
        self._api.patch(f"{path}/status", {"status": {"conditions": [*others, issuing]}})

    def down(self) -> None:
        """Leave nothing of it."""
        process.kill(found for found in [process.find(self._layout.folder, NAME)] if found)
        for definition in _definitions():
            self._api.delete(f"{_DEFINITIONS}/{definition['metadata']['name']}")
        self._api.delete(self._home)


def is_ready(obj: Object) -> bool:
    """Return whether the Ready condition of a certificate or an issuer is True."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _definitions() -> Iterator[Object]:
    """Its definitions of resources, those of ACME too: its controllers watch them."""
    folder = go_modules.download(_MODULE, of=MODULES / NAME) / "deploy" / "crds"
    for file in sorted(folder.glob("*.yaml")):
        yield yaml.safe_load(file.read_text())


def _issuers() -> dict[str, Object]:
    """A certificate that signs itself, and the issuer that signs with it, by path."""
    itself = {"name": "itself", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    return {
        f"{_CLUSTER_ISSUERS}/itself": _object("ClusterIssuer", "itself", {"selfSigned": {}}),
        f"{CERTIFICATES.format(namespace=NAME)}/{_AUTHORITY}": _object(
            "Certificate",
            _AUTHORITY,
            {
                "isCA": True,
                "commonName": _AUTHORITY,
                "secretName": _AUTHORITY,
                "privateKey": {"algorithm": "ECDSA", "size": 256},
                "issuerRef": itself,
            },
        ),
        f"{_CLUSTER_ISSUERS}/{ISSUER}": _object("ClusterIssuer", ISSUER, {"ca": {"secretName": _AUTHORITY}}),
    }


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
