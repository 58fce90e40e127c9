"""State of a scheduler, as a reconcile reads and writes it."""

from typing import Any, Final

import pytest

from fairlead.control.decide.decide import ReconcileDecision
from fairlead.control.decide.drift import DriftLog
from fairlead.control.decide.persisted_state import PersistedState, to_config_map
from fairlead.control.decide.rollout import RolloutState
from fairlead.control.reconcile.apply import Applier
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.control.reconcile.observe import observe
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.documents import FORMAT
from fairlead.kube.errors import ConflictError
from fairlead.kube.http.client import Client
from fairlead.kube.http.document_writer import DocumentFaultError
from fairlead.render.object_names import ObjectNames
from fairlead.render.scheduler_bindings import KUBE_SYSTEM
from scripted.loop import in_loop
from support.faults.api import Api
from support.faults.faults import Wire

NAMES: Final = ObjectNames("s", "n")
KEY: Final = ("", "configmaps", "n", NAMES.state)
BEFORE, AFTER = (PersistedState(rollout=RolloutState(last_good=name)) for name in ("before", "after"))


async def persist(client: Client, api: Api, *, edited: bool = False) -> PersistedState:
    """Observe a scheduler, persist another state of it, and return what was observed."""
    objects = ObjectClient(client)
    observed = await observe(objects, NAMES, counts=False)
    if edited:
        api.edit(KEY, data={"state.json": "{}"})
    drifts, owner = DriftLog(), NamespaceOwner(objects, "n", lambda: KUBE_SYSTEM)
    applier = Applier(objects, SchedulerBindings(objects, owner, drifts), drifts)
    await applier.persist(NAMES, ReconcileDecision(lifecycle="Keep", persisted=AFTER), observed)
    return observed.scheduler.persisted


def api_with(config_map: dict[str, Any] | None = None, **metadata: Any) -> Api:
    api = Api(lambda: "2026-01-01T00:00:00Z")
    if config_map is not None:
        api.put(KEY, {**config_map, "metadata": {**config_map["metadata"], **metadata}})
    return api


@in_loop
async def test_state_is_created_and_one_of_a_version_without_formats_is_read_and_replaced() -> None:
    for api, want in ((api_with(), PersistedState()), (api_with(to_config_map(NAMES, BEFORE)), BEFORE)):
        async with Wire(api).client() as client:
            assert await persist(client, api) == want
            assert (await observe(ObjectClient(client), NAMES, counts=False)).scheduler.persisted == AFTER
        assert api.objects[KEY]["metadata"]["annotations"][FORMAT] == "1"


@in_loop
async def test_state_that_another_leader_wrote_meanwhile_is_not_written_over() -> None:
    api = api_with(to_config_map(NAMES, BEFORE))
    async with Wire(api).client() as client:
        with pytest.raises(ConflictError):
            await persist(client, api, edited=True)
    assert api.objects[KEY]["data"] == {"state.json": "{}"}


@pytest.mark.parametrize(
    ("annotations", "text", "why"),
    [({FORMAT: "2"}, "{}", "has format '2'"), ({}, "{", "cannot be read: Input data was truncated")],
)
@in_loop
async def test_state_that_cannot_be_read_is_left_alone_and_the_fault_says_what_to_do(
    annotations: dict[str, str], text: str, why: str
) -> None:
    api = api_with({**to_config_map(NAMES, BEFORE), "data": {"state.json": text}}, annotations=annotations)
    before = dict(api.objects)
    async with Wire(api).client() as client:
        with pytest.raises(DocumentFaultError) as raised:
            await persist(client, api)
    assert str(raised.value).startswith(f"ConfigMap {NAMES.state}, the state of a scheduler, {why}")
    assert str(raised.value).endswith("or delete it, and what runs is verified again")
    assert api.objects == before
