"""Measured values as a replica of the operator has them, for those who may call replicas as the operator does."""

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from fairlead.api.data import DataEntry
from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.cli.inputs.operator_survey import home_of, operator_namespaces
from fairlead.cli.inputs.replica_pages import ReplicaPages, SilentError
from fairlead.control.decide.rollout_observation import is_ready
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.pki.identities import REPLICAS
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.measured_table import FUTURE, NO_NUMBER, SEVERAL, STALE
from fairlead.policy.nodes.polls import Poll, Reading, poll_of
from fairlead.replica_state import DATA_PATH

Pages = Mapping[str, Mapping[str, Any]]
"""Values of entries by the path of their page."""


async def add_replica_values(data: MeasuredInput, client: Client, policies: Sequence[CompiledPolicy]) -> None:
    """Add the values of entries that nothing else has given, as a replica has them."""
    wanted: dict[Poll, tuple[str, DataEntry]] = {}
    for policy in policies:
        for entry in policy.data:
            poll = poll_of(entry)
            if poll is not None and poll not in data.readings and poll not in wanted:
                wanted[poll] = page_of(policy.name, entry.name), entry
    if not wanted:
        return
    try:
        replica, pages = await ask_replica(client, [path for path, _ in wanted.values()])
    except (SilentError, ClusterError) as error:
        data.notes.append(f"the replicas' own values cannot be asked: {error}")
        return
    for poll, (path, entry) in wanted.items():
        if pages.get(path, {}).get("source") == poll.name:  # it may serve another generation
            data.readings[poll] = reading_of(pages[path], entry)
            data.notes.append(f"{poll.name}: values of the replica {replica}")


def page_of(policy: str, entry: str) -> str:
    """Return the path of the page with the values of an entry."""
    return f"{DATA_PATH}{quote(policy, safe='')}/{quote(entry, safe='')}"


def reading_of(page: Mapping[str, Any], entry: DataEntry) -> Reading:
    """Return the values of a page, as they were before the entry's factor."""
    values, times, faults = dict[str, float](), dict[str, int](), dict[str, set[str]]()
    for name, one in page.get("nodes", {}).items():
        if one.get("default"):
            continue  # the entry has it, too
        fault, at = one.get("fault"), moment(one.get("time", ""))
        if at is not None:
            times[name] = at
        if fault is None:
            values[name] = _unscaled(one["value"], entry.factor)
        elif fault in (STALE, FUTURE):
            values[name] = 0.0  # its time keeps it from being used
        else:
            faults.setdefault(fault, set()).add(name)
    return Reading(values, times, frozenset(faults.get(SEVERAL, ())), frozenset(faults.get(NO_NUMBER, ())))


def _unscaled(value: float, factor: float) -> float:
    """Return the number that times the factor is this value, in floating point."""
    near = value / factor
    return next(
        (
            one
            for one in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf))
            if one * factor == value
        ),
        near,
    )


async def ask_replica(client: Client, paths: Sequence[str]) -> tuple[str, Pages]:
    """Return the name of the first replica that answers, and its pages."""
    objects = ObjectClient(client)
    home = home_of(await operator_namespaces(objects))
    pods = await objects.all(ObjectRef(PODS.resource, home), labelSelector=REPLICAS)
    ready = sorted(filter(is_ready, pods), key=lambda pod: str(pod["metadata"]["name"]))
    if not ready:
        raise SilentError(f"no replica is ready in {home}")
    replicas, why = ReplicaPages(client, home), ""
    for pod in ready:
        try:
            found = await replicas.fetch(pod, paths)
            return pod["metadata"]["name"], {path: msgspec.json.decode(page) for path, page in found.items()}
        except (SilentError, msgspec.DecodeError) as error:
            why = why or str(error)
    raise SilentError(why)
