"""Check that the CustomResourceDefinition in the cluster knows every strategy of this version."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fairlead.control.status.crd_fields import CrdFields, decode_document
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import OPENAPI

LOG: Final = logging.getLogger(__name__)
_CHECK_S: Final = 60.0


@dataclass(slots=True, eq=False, kw_only=True)
class CrdCheck:
    """Check of one leader, once a minute."""

    client: Client
    fields: CrdFields
    on_change: Callable[[], Awaitable[None]]
    """Reads the policies again, and writes their statuses."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(_CHECK_S)

    async def check(self) -> None:
        """Compare once. If the API server does not answer, what was known remains."""
        try:
            if not self.fields.compare(await self.client.get(OPENAPI, decode_document)):
                return
            if self.fields.missing:
                LOG.warning("crd.outdated", extra={"strategies": self.fields.names})
            else:
                LOG.info("crd.current")
            await self.on_change()
        except ClusterError as error:
            LOG.debug("crd.check_failed", extra={"error": str(error)})
