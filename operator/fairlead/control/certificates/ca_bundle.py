"""By whom the API server knows who answers its questions about our kind: the chart leaves it open, the leader fills it.

Without it the API server asks in vain and goes on: the webhook's failurePolicy is Ignore.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.kube.errors import NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.pki.authority import Authority
from fairlead.render.rbac import ADMISSION

WEBHOOK: Final = "policies.fairlead.dev"
CONFIGURATIONS: Final = Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
_MANAGER: Final = "fairlead-admission"
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def patch_ca_bundle(client: Client, namespace: str, authority: bytes) -> None:
    """Have these certificates believed; nothing where there is no such configuration. Raises ClusterError."""
    name, bundle = ADMISSION.format(namespace=namespace), base64.b64encode(authority).decode()
    at = ObjectRef(CONFIGURATIONS, "", name)
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


@dataclass(slots=True, eq=False)
class WebhookCABundle:
    """Whom the API server is to believe."""

    client: Client
    namespace: str
    is_self_managed: Callable[[], bool]
    """Whether the authority is our own; whoever else makes certificates also says who is to be believed."""
    authority: Authority | None = None

    async def set(self, authority: Authority) -> None:
        """Have it believed from now on."""
        self.authority = authority
        await self.sync()

    async def sync(self) -> None:
        """The chart may have made its configuration anew, which tells nobody else."""
        if self.authority is not None and self.is_self_managed():
            await patch_ca_bundle(self.client, self.namespace, self.authority.client_ca_bundle)
