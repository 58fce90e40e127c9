"""What a replica that leads is given: a client that is fenced by both Leases."""

from typing import Any

import pytest

from fairlead.control.loop.controller import LeaderContext
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
