"""CA bundle for those who verify a replica: the admission webhook, and scrapers of metrics.

The chart leaves it empty, and the leader sets it. Without it the API server cannot call the webhook and stores policies
unchecked: its failurePolicy is Ignore.
"""

import base64
from typing import Final

from fairlead.kube.errors import NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource, decode_object
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.pki.identities import AUTHORITY_CONFIG_MAP
from fairlead.render.rbac import ADMISSION

WEBHOOK: Final = "policies.fairlead.dev"
CONFIGURATIONS: Final = Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
_MANAGER: Final = "fairlead-admission"


async def patch_ca_bundle(client: Client, namespace: str, authority: bytes) -> None:
    """Write these certificates into the webhook's configuration, if there is one. Raises ClusterError."""
    name, bundle = ADMISSION.format(namespace=namespace), base64.b64encode(authority).decode()
    at = ObjectRef(CONFIGURATIONS, "", name)
    try:
        live = await client.get(at, decode_object)
    except NotFoundError:
        return
    hook = next((one for one in live.get("webhooks", ()) if one["name"] == WEBHOOK), None)
    if hook is None or hook["clientConfig"].get("caBundle") == bundle:
        return
    body = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {"name": name},
        "webhooks": [{"name": WEBHOOK, "clientConfig": {"caBundle": bundle}}],
    }
    await client.apply(at, body, decode_object, manager=_MANAGER, force=True)


async def publish_authority(client: Client, namespace: str, authority: bytes) -> None:
    """Write these certificates into the chart's ConfigMap, if there is one. Raises ClusterError."""
    at, text = CONFIG_MAPS.named(namespace, AUTHORITY_CONFIG_MAP), authority.decode()
    try:
        live = await client.get(at, decode_object)
    except NotFoundError:
        return
    if (live.get("data") or {}).get("ca.crt") == text:
        return
    metadata = {"name": AUTHORITY_CONFIG_MAP, "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": text}}
    await client.apply(at, body, decode_object, manager=_MANAGER, force=True)
