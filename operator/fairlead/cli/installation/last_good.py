"""Last good generations of policies, as the operator has stored them, with the reader's own permissions."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.cli.inputs.cluster_source import WITHIN_S, ClusterSource
from fairlead.cli.inputs.live_policies import LivePolicy, with_stored
from fairlead.cli.inputs.operator_survey import operator_namespaces
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.access.access import find_access
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.process.settings import NAMESPACE
from fairlead.webhook.serving.last_good import LABEL, REVISIONS, good_of

_CLUSTER = "cluster"
"""Value of the label for policies of the API server."""
_Key = tuple[str, str, str]
"""Name, UID and generation of a policy."""


def add_last_good(given: argparse.Namespace, sight: ClusterSource) -> None:
    """Compile the stored generation of each policy of which replicas serve another one than the newest."""
    if any(one.compiled is None for one in sight.live.policies):
        stored, why = asyncio.run(_read(given))
        custom = custom_strategies()
        sight.live.policies = [
            one if one.compiled is not None else with_stored(one, stored.get(_key(one)), why, custom)
            for one in sight.live.policies
        ]


def _key(one: LivePolicy) -> _Key:
    return one.name, one.uid, str(one.serving)


async def _read(given: argparse.Namespace) -> tuple[Mapping[_Key, Mapping[str, Any]], str]:
    """Return the stored generations, and why one may be missing."""
    async with Client(find_access(given.kubeconfig, given.context), deadline_s=WITHIN_S) as client:
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
