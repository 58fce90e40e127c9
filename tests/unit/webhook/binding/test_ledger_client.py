"""What the API server answers becomes an outcome: what is refused is certain, what is not answered is open."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead.grants.entry_state import GONE, PodState
from fairlead.grants.ledger import Ledger
from fairlead.kube.http.client import Client
from fairlead.webhook.binding.api_calls import Conflicting, Failed, Missing, Posted, Uncertain
from fairlead.webhook.binding.binding_client import BindingClient
from fairlead.webhook.binding.ledger_client import LedgerClient
from fairlead.webhook.binding.pods_with_grants import PodDecoder
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import answer, broken, refuse

LEDGER = {
    "metadata": {
        "name": "fairlead-grants-n",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"fairlead.dev/grants": ""},
        "annotations": {"fairlead.dev/node": "n"},
    }
}
POD = {
    "metadata": {"name": "p", "namespace": "ml", "uid": "u-p", "resourceVersion": "5"},
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "c", "resources": {"requests": {"example.org/mem": "3", "cpu": "1"}}}],
    },
    "status": {"phase": "Running"},
}
UNPLACED = {**POD, "spec": {}, "status": {"phase": "Failed"}}
BARE = hash((frozenset[str](), frozenset[str]()))
STATE = PodState("u-p", "ml/p", "5", "n", request={"example.org/mem": 3}, metadata_hash=BARE)
BINDING = {"metadata": {"namespace": "ml", "name": "p"}}
Call = Callable[[LedgerClient, BindingClient], Awaitable[Any]]
CALLS: dict[str, tuple[Call, str]] = {
    "read": (lambda one, _: one.read_ledger("n", 5), "GET /api/v1/namespaces/ops/configmaps/fairlead-grants-n"),
    "create": (lambda one, _: one.create_ledger({}, 5), "POST /api/v1/namespaces/ops/configmaps"),
    "patch": (lambda one, _: one.patch_ledger("n", {}, 5), "PATCH /api/v1/namespaces/ops/configmaps/fairlead-grants-n"),
    "pod": (lambda one, _: one.read_pod("ml/p", 5), "GET /api/v1/namespaces/ml/pods/p"),
    "list": (lambda one, _: one.list_pods("n", 5), "GET /api/v1/pods"),
    "unplaced": (lambda one, _: one.list_unplaced(5), "GET /api/v1/pods"),
    "bind": (lambda _, one: one.post_binding(BINDING, 5), "POST /api/v1/namespaces/ml/pods/p/binding"),
}
OUTCOMES: list[tuple[str, Step, object]] = [
    ("read", answer(LEDGER), Ledger("n", "u", "7")),
    ("read", refuse(404), Missing),
    ("read", refuse(500), Failed),
    ("read", answer([]), Failed),
    ("create", answer(LEDGER, 201), Ledger("n", "u", "7")),
    ("create", refuse(409, "AlreadyExists"), Conflicting),
    ("create", refuse(403), Failed),
    ("create", refuse(429), Failed),
    ("create", refuse(504), Uncertain),
    ("create", broken, Uncertain),
    ("patch", answer(LEDGER), Ledger("n", "u", "7")),
    ("patch", refuse(409, "Conflict"), Conflicting),
    ("patch", refuse(404), Missing),
    ("patch", refuse(422), Failed),
    ("patch", refuse(500), Uncertain),
    ("patch", broken, Uncertain),
    ("patch", answer([]), Uncertain),
    ("pod", answer(POD), STATE),
    ("pod", refuse(404), GONE),
    ("pod", refuse(503), Failed),
    ("list", answer({"items": [POD]}), [STATE]),
    ("list", answer({"items": None}), []),
    ("list", refuse(500), Failed),
    ("unplaced", answer({"items": [UNPLACED]}), [PodState("u-p", "ml/p", "5", ended=True)]),
    ("unplaced", answer({"items": None}), []),
    ("unplaced", answer({"items": [{}]}), Failed),
    ("unplaced", refuse(500), Failed),
    ("bind", answer({}, 201), Posted()),
    ("bind", refuse(409, "Conflict"), Conflicting),
    ("bind", refuse(404), Missing),
    ("bind", refuse(429), Failed),
    ("bind", refuse(500), Uncertain),
    ("bind", broken, Uncertain),
]


@pytest.mark.parametrize(("name", "step", "outcome"), OUTCOMES)
@in_loop
async def test_an_answer_is_an_outcome(name: str, step: Step, outcome: object) -> None:
    call, line = CALLS[name]
    async with Server(script=[step]) as server, Client(server.login()) as client:
        bindings = BindingClient(client)
        found = await call(LedgerClient(bindings, "ops", PodDecoder(list, lambda _: None).read), bindings)
    (seen,) = server.seen
    assert f"{seen.method} {seen.path}" == line
    assert isinstance(found, outcome) if isinstance(outcome, type) else found == outcome


@in_loop
async def test_what_never_left_is_certain() -> None:
    async with Server() as server, Client(server.login()) as client:
        await server.__aexit__(None, None, None)
        found = await BindingClient(client).post_binding(BINDING, 5)
    assert isinstance(found, Failed)


@in_loop
async def test_a_deletion_names_the_version_that_was_judged() -> None:
    async with Server(answer({})) as server, Client(server.login()) as client:
        await LedgerClient(BindingClient(client), "ops", PodDecoder(list, lambda _: None).read).delete_ledger(
            Ledger("n", "u", "7")
        )
    assert json.loads(server.seen[0].body)["preconditions"] == {"uid": "u", "resourceVersion": "7"}
