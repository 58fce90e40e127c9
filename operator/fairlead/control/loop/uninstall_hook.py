"""Uninstall hook of the chart, which runs no pod until an operator of the install has led.

The chart's install leaves an admission policy that completes the hook's Jobs at once, so that an install whose image
cannot be pulled can be removed. The leader deletes it before it creates anything that an uninstall has to delete.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ClusterError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.render.rbac import NOTHING_TO_UNINSTALL

LOG: Final = logging.getLogger(__name__)
_GROUP: Final = "admissionregistration.k8s.io"
_KINDS: Final = (
    Resource(_GROUP, "v1", "mutatingadmissionpolicybindings"),  # the first: without it the policy does nothing
    Resource(_GROUP, "v1", "mutatingadmissionpolicies"),
)
_CONSEQUENCE: Final = "helm uninstall would leave the schedulers"
_RETRY_S: Final = 30.0


@dataclass(slots=True, eq=False)
class UninstallHook:
    """The chart's admission policy, as the leader deletes it."""

    client: Client
    namespace: str
    missing_permissions: MissingPermissions
    armed: bool = False
    """True once the policy is gone, and an uninstall runs its pods."""

    async def arm(self) -> None:
        """Delete the policy, if there is one; a failure is recorded."""
        name = NOTHING_TO_UNINSTALL.format(namespace=self.namespace)
        try:
            for kind in _KINDS:
                try:
                    await self.client.delete(ObjectRef(kind, "", name))
                except NotFoundError:  # an earlier leader was here, or the cluster does not have the kind
                    continue
                LOG.info("uninstall_hook.armed", extra={"object": f"{kind.plural} {name}"})
        except ClusterError as error:
            self.missing_permissions.record(_CONSEQUENCE, error)
            return
        self.missing_permissions.clear(_CONSEQUENCE)
        self.armed = True

    async def run(self) -> None:
        """Repeat it until it succeeds."""
        while not self.armed:
            await asyncio.sleep(_RETRY_S)
            await self.arm()
