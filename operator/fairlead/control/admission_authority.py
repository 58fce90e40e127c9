"""By whom the API server knows who answers its questions about our kind: the chart leaves it open, the leader fills it.

Without it the API server asks in vain and goes on: the webhook's failurePolicy is Ignore.
"""

import base64
from typing import Any, Final

import msgspec

from fairlead.cluster.client import Client
from fairlead.cluster.errors import NotFoundError
from fairlead.cluster.resources import Resource, Where
from fairlead.render.access import ADMISSION

WEBHOOK: Final = "policies.fairlead.dev"
CONFIGURATIONS: Final = Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
_MANAGER: Final = "fairlead-admission"
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def trust(client: Client, namespace: str, authority: bytes) -> None:
    """Have these certificates believed; nothing where there is no such configuration. Raises ClusterError."""
    name, bundle = ADMISSION.format(namespace=namespace), base64.b64encode(authority).decode()
    at = Where(CONFIGURATIONS, "", name)
    try:
        there = await client.get(at, _decode)
    except NotFoundError:
        return
    hook = next((one for one in there.get("webhooks", ()) if one["name"] == WEBHOOK), None)
    if hook is None or hook["clientConfig"].get("caBundle") == bundle:
        return
    body = {
        "apiVersion": there["apiVersion"],
        "kind": there["kind"],
        "metadata": {"name": name},
        "webhooks": [{"name": WEBHOOK, "clientConfig": {"caBundle": bundle}}],
    }
    await client.apply(at, body, _decode, manager=_MANAGER, force=True)
