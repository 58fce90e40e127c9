"""Objects with published node affinity, as the API server has them."""

from collections.abc import Sequence

from fairlead.api.names import PUBLISHED_KIND
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ForbiddenError, NotFoundError
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.render.object_names import MANAGED_BY, MANAGER, OPERATOR_NAMESPACE, Object


async def published_objects(objects: ObjectClient, namespace: str) -> Sequence[Object]:
    """Return the objects that the operator of a namespace wrote, with their kind.

    None where their kind is unknown, or may not be listed.
    """
    try:
        found = await objects.all(
            PUBLISHED_AFFINITIES, labelSelector=f"{MANAGED_BY}={MANAGER},{OPERATOR_NAMESPACE}={namespace}"
        )
    except (ForbiddenError, NotFoundError):
        return ()
    return [{**one, "kind": PUBLISHED_KIND} for one in found]
