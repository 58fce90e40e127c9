"""Device grants as a replica knows them: what they report."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from aiohttp import web

from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import StatusInputs, build_status
from fairlead.kube.http.client import Client
from fairlead.mirror.mirror import Mirror
from fairlead.replica_state import PolicyState, ReplicaState
from fairlead.webhook.binding.device_grants import DeviceGrants
from policies.good import device_share
from scripted.loop import in_loop
from scripted.server import Server
from support.policy import policy

REFUSED = 'configmaps is forbidden: User "f" cannot list resource "configmaps" in API group "" in the namespace "sick"'
RULE = 'of that user lacks the rule {apiGroups: [""], resources: [configmaps], verbs: [list]}'


def conditions(name: str, report: ReplicaState) -> dict[str, tuple[str, str, str]]:
    made = build_status(
        StatusInputs(
            policy={"metadata": {"name": name, "uid": name, "generation": 1}, "spec": {"mode": "Enforce"}},
            states={"one": report},
            result=ReconcileResult(),
            paused=False,
        ),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in made["conditions"]}


@in_loop
async def test_a_refused_watch_of_unhealthy_devices_is_reported_with_the_policies_that_name_them() -> None:
    lists = {"configMap": {"namespace": "sick", "prefix": "sick-", "key": "ids"}}
    serving = [
        replace(policy(binding={"deviceShare": [device_share(unhealthy=lists)]}), name="lists"),
        replace(policy(binding={"deviceShare": [device_share()]}), name="without"),
    ]
    states = {one.name: PolicyState(uid=one.name, generation="1", reason="Compiled") for one in serving}

    async def refused(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": REFUSED}, status=403)

    async with Server(refused) as server, Client(server.login()) as client:
        grants = DeviceGrants(client, Mirror(lambda: 0), "own", lambda: serving)
        tasks = [asyncio.ensure_future(grants.run()), asyncio.ensure_future(grants.follow(serving))]
        while not any(one.state.last_error for one in grants.on_demand.values()):
            await asyncio.sleep(0.01)
        report = grants.report(ReplicaState(policies=states))
        status, reason, message = conditions("lists", report)["Programmed"]
        assert (status, reason) == ("False", "Forbidden")
        assert message.startswith("one: its unhealthy devices cannot be read: ")
        assert RULE in message
        assert conditions("without", report)["Programmed"][1] == "ReplicaBehind", "it lacks nothing"
        assert report.missing_permission == "", "it is no fault of the replica"
        tasks[1].cancel()
        serving.clear()
        await grants.follow(serving)
        assert grants.report(ReplicaState(policies=states)) == ReplicaState(policies=states)
        tasks[0].cancel()
