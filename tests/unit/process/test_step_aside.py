"""Who may ask a replica of the operator to step aside, and what it says then."""

import pytest

from fairlead.kube.http.client import Client
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.process.health import checks
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile
from fairlead.replica_state import ASIDE_PATH, PATH, DataEntryState, FaultState
from fairlead.webhook.capability import ReadinessCheck
from fairlead.webhook.measured_data.measured_data import MeasuredData
from scripted.server import login_to

CUT = DataEntryState(
    name="load", source="prometheus default", nodes=1, error="refused", faults=(FaultState(why="is stale", nodes=1),)
)

WELL = DataEntryState(name="well", source="prometheus default", nodes=1, with_value=1)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> OperatorReplica:
    """A replica that is cut off from its server."""
    monkeypatch.setattr(MeasuredData, "entries", lambda _: {"p": (CUT, WELL)})
    nowhere = Address("", 0)
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere)
    return OperatorReplica(settings, Client(login_to("https://nowhere")), SettingsFile(None))


def serving(operator: OperatorReplica) -> ReadinessCheck:
    (found,) = [one for one in checks(operator.replica.parts) if one.name == "serving"]
    return found


@pytest.mark.parametrize(
    ("caller", "path", "answers", "steps_aside"),
    [
        pytest.param(OPERATOR, ASIDE_PATH, True, True, id="the leader asks"),
        pytest.param(OPERATOR, PATH, True, False, id="the leader polls only"),
        pytest.param(scheduler_identity("default-scheduler"), ASIDE_PATH, False, False, id="a scheduler"),
        pytest.param("stranger", ASIDE_PATH, False, False, id="somebody else"),
    ],
)
def test_the_leader_alone_can_ask(
    operator: OperatorReplica,
    caller: str,
    path: str,
    answers: bool,
    steps_aside: bool,
) -> None:
    assert (operator.replica.server.pages[path](caller, path) is not None) == answers
    assert bool(operator.replica.server.aside) == steps_aside
    assert serving(operator).ok == (not steps_aside)


def test_readyz_names_the_entry_and_its_server(operator: OperatorReplica) -> None:
    assert serving(operator) == ReadinessCheck("serving", ok=True)
    operator.aside.ask()
    found = serving(operator)
    assert (found.ok, "load (prometheus default)" in found.text, "well" in found.text) == (False, True, False)
