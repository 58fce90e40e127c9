"""Ledgers of nodes that are gone are deleted once nothing in them holds, and no others."""

import pytest

from fairlead.grants.entry import LedgerEntry
from fairlead.grants.entry_state import GONE, Gone, PodState
from fairlead.grants.ledger import Ledger
from fairlead.kube.errors import ConflictError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.kube.watch.store import Meta
from fairlead.mirror import decode
from fairlead.webhook.binding.api_calls import Failed
from fairlead.webhook.binding.binding_client import BindingClient
from fairlead.webhook.binding.ledger_client import LedgerClient
from fairlead.webhook.binding.ledger_feed import LedgerFeed, LedgerSink, ListedLedger
from fairlead.webhook.binding.mirror_views import MirrorViews
from scripted.loop import in_loop
from scripted.server import Server
from support.mirror import FedMirror, node, written

ENTRY = LedgerEntry("ml/p", "5", "policy", {})
OTHER_UID = PodState("u-2", "ml/p", "9")
CHANGED = PodState("u-p", "ml/p", "9")
BOUND = PodState("u-p", "ml/p", "9", "gone")


class Api(LedgerClient):
    """The API server, in which there is one pod."""

    def __init__(self, client: Client, pod: PodState | Gone | Failed) -> None:
        super().__init__(BindingClient(client), "ops", lambda _: OTHER_UID)
        self.pod = pod
        self.deleted: list[str] = []

    async def read_pod(self, pod: str, timeout_s: float) -> PodState | Gone | Failed:
        return self.pod

    async def delete_ledger(self, ledger: Ledger) -> None:
        self.deleted.append(ledger.subject)
        raise ConflictError("delete", CONFIG_MAPS, "it has another version", status=409)


@pytest.mark.parametrize(
    ("pod", "is_deleted"),
    [(GONE, True), (OTHER_UID, True), (CHANGED, True), (BOUND, False), (Failed("no answer"), False)],
    ids=["gone", "another pod", "unplaced and changed", "still there", "unknown"],
)
@in_loop
async def test_what_is_gone_and_over_is_deleted(pod: PodState | Gone | Failed, is_deleted: bool) -> None:
    told = FedMirror()
    told.mirror.node_sink.put(decode.node(written(node("here"))))
    views = MirrorViews(told.mirror, list)
    views.ledgers.update({one: Ledger(one, "u", "7", {"u-p": ENTRY}) for one in ("here", "gone")})
    async with Server() as server, Client(server.login()) as client:
        api = Api(client, pod)
        await LedgerFeed(client, api, "ops", views.ledgers, views).delete_unused(lambda name: name == "here")
    assert api.deleted == (["gone"] if is_deleted else [])


def test_a_ledger_that_was_deleted_is_forgotten_everywhere() -> None:
    told, forgotten = FedMirror(), list[str]()
    views = MirrorViews(told.mirror, list)
    sink = LedgerSink(views.ledgers)
    sink.on_removed = forgotten.append
    sink.put(ListedLedger(Meta("fairlead-grants-n1", "ops"), Ledger("n1", "u", "7", {"u-p": ENTRY})))
    assert views.ledger("n1") is not None
    sink.remove(("ops", "another"))
    sink.remove(("ops", "fairlead-grants-n1"))
    assert (views.ledger("n1"), forgotten) == (None, ["n1"])
