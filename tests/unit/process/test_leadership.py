"""What a replica that leads is given: a client that is fenced by both Leases."""

from typing import Any

import pytest

from fairlead.control.loop.leader_context import LeaderContext
from fairlead.kube.http.client import Client
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.process import leadership
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from scripted.server import login_to

NOWHERE = login_to("https://nowhere")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> tuple[LeaderContext, leadership.Leadership]:
    """What the leader's part knows."""
    told: list[LeaderContext] = []

    def keep(**fields: Any) -> LeaderContext:
        told.append(LeaderContext(**fields))
        return told[-1]

    monkeypatch.setattr(leadership, "LeaderContext", keep)
    monkeypatch.setattr(leadership, "log_in", lambda *_: NOWHERE)
    nowhere = Address("", 0)
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere, pod="some", pod_uid="some")
    made = leadership.Leadership(OperatorReplica(settings, Client(NOWHERE), SettingsFile(None)))
    return told[0], made


def test_a_leaders_requests_do_not_outlast_its_lease(known: tuple[LeaderContext, leadership.Leadership]) -> None:
    client = known[0].client()
    assert client._deadline_s <= LeaseTimings().act_s
    assert client._writes_for_s is not None
    assert client._writes_for_s() == 0, "it has no Lease yet"


@pytest.mark.parametrize(("own", "cluster", "leads_for"), [(0, 0, 0), (9, 0, 0), (0, 30, 0), (9, 30, 9), (9, 2, 2)])
def test_it_leads_while_it_has_both_leases(
    known: tuple[LeaderContext, leadership.Leadership],
    own: float,
    cluster: float,
    leads_for: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, made = known
    monkeypatch.setattr(type(made.elector), "left_s", own)
    monkeypatch.setattr(type(made.claim), "left_s", cluster)
    assert (made.left_s, made.is_leader, told.is_leader()) == (leads_for, leads_for > 0, leads_for > 0)
    client = told.client()
    assert client._writes_for_s is not None
    assert client._writes_for_s() == leads_for


@pytest.mark.parametrize(
    ("leads_for", "address", "want"), [(0, "10.0.0.8:8443", "10.0.0.8:8443"), (0, "", ""), (9, "10.0.0.8:8443", "")]
)
def test_calls_are_passed_on_to_another_replica_that_leads(
    known: tuple[LeaderContext, leadership.Leadership],
    leads_for: float,
    address: str,
    want: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, made = known
    monkeypatch.setattr(type(made.elector), "left_s", leads_for)
    made.elector.other_address = address
    assert made.other_leader == want


@pytest.mark.parametrize(
    ("address", "port", "want"),
    [("10.0.0.7", 8443, "10.0.0.7:8443"), ("fd00::7", 8443, "[fd00::7]:8443"), ("", 8443, "")],
)
def test_a_replica_tells_the_others_where_it_can_be_called(
    address: str, port: int, want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "log_in", lambda *_: NOWHERE)
    settings = OperateSettings(listen=Address("", port), probes=Address("", 0), address=address)
    made = leadership.Leadership(OperatorReplica(settings, Client(NOWHERE), SettingsFile(None)))
    assert made.elector._address == want
