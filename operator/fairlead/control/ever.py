"""Which schedulers were ever managed: whoever placed pods for a name that is not among them is somebody else."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.cluster.errors import NotFoundError
from fairlead.cluster.ever import NAME
from fairlead.cluster.resources import Where
from fairlead.control.objects import Objects, resource
from fairlead.render.names import MANAGER

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True, eq=False)
class Ever:
    """A ConfigMap that outlives them."""

    objects: Objects
    namespace: str

    async def managed(self, scheduler: str) -> bool:
        """Whether this one was."""
        found = await self.objects.get(Where(resource("ConfigMap"), self.namespace, NAME))
        return scheduler in ((found or {}).get("data") or {})

    async def note(self, scheduler: str, now: datetime) -> None:
        """It is from now on."""
        at, data = Where(resource("ConfigMap"), self.namespace, NAME), {scheduler: now.isoformat(timespec="seconds")}
        try:
            await self.objects.client.merge(at, {"data": data}, _decode)
        except NotFoundError:
            labels = {"app.kubernetes.io/managed-by": MANAGER}
            metadata = {"name": NAME, "namespace": self.namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self.objects.client.create(Where(resource("ConfigMap"), self.namespace), body, _decode)
