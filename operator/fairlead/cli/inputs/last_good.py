"""Last good generations of policies, as the operator has stored them, with the reader's own permissions."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.cli.inputs.live_policies import LivePolicy, with_stored
from fairlead.cli.inputs.operator_survey import operator_namespaces
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.pki.identities import NAMESPACE
from fairlead.webhook.serving.last_good import LABEL, REVISIONS, good_of

_CLUSTER = "cluster"
"""Value of the label for policies of the API server."""
_Key = tuple[str, str, str]
"""Name, UID and generation of a policy."""


async def with_last_good(client: Client, policies: Sequence[LivePolicy]) -> list[LivePolicy]:
    """Return policies with the stored generation of each of which replicas serve another one than the newest."""
    if all(one.compiled is not None for one in policies):
        return [*policies]
    stored, why = await _read(client)
    custom = custom_strategies()
    return [
        one if one.compiled is not None else with_stored(one, stored.get(_key(one)), why, custom) for one in policies
    ]


def _key(policy: LivePolicy) -> _Key:
    return policy.name, policy.uid, str(policy.serving)


async def _read(client: Client) -> tuple[Mapping[_Key, Mapping[str, Any]], str]:
    """Return the stored generations, and why one may be missing."""
    objects = ObjectClient(client)
    homes: Sequence[str] = await operator_namespaces(objects) or [NAMESPACE]
    found: dict[_Key, Mapping[str, Any]] = {}
    why = f"no ControllerRevision in {', '.join(homes)} has it"
    for home in homes:
        try:
            revisions = await objects.all(ObjectRef(REVISIONS, home), labelSelector=f"{LABEL}={_CLUSTER}")
        except ClusterError as error:
            why = f"it is stored in a ControllerRevision of {home}: {error}"
            continue
        for good in filter(None, (good_of(one).value for one in revisions)):
            found[good.name, good.uid, good.generation] = good.obj
    return found, why
