"""What a replica shows and trusts follows the Secret; what spoils the Secret changes nothing."""

from dataclasses import dataclass, field
from datetime import datetime

import pytest

from fairlead.kube.watch.secrets import Secret, SecretMetadata
from fairlead.pki import parsing
from fairlead.pki.authority import LEAF_LIFE, Authority, Phase, server_hosts
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.rotation import ReplicaTrust
from fairlead.process.replica_certificates import ReplicaCertificates
from support.pki.authorities import DAY, NOW, authority, handshake

HOSTS = server_hosts("fairlead", "fairlead-system", frozenset({"10.0.0.7", "fd00::7"}))


@dataclass
class One:
    now: datetime = NOW
    changes: int = 0
    material: ReplicaCertificates = field(init=False)

    def __post_init__(self) -> None:
        self.material = ReplicaCertificates(HOSTS, lambda: self.now, self.count)

    def count(self, _: ReplicaCertificates) -> None:
        self.changes += 1

    def put(self, held: Authority | dict[str, bytes]) -> None:
        data = held.data() if isinstance(held, Authority) else held
        self.material.put(Secret(SecretMetadata("fairlead-ca", "fairlead-system"), data=data))


@pytest.mark.parametrize("phase", Phase)
def test_it_shows_what_the_one_that_signs_has_signed_and_trusts_all(phase: Phase) -> None:
    held, one = authority(phase), One()
    one.put(held)
    assert one.material.state == ReplicaTrust(
        parsing.digest(held.client_ca_bundle), parsing.read_certificate(held.signing.certificate).key
    )
    server, operator = one.material.server, one.material.operator
    assert server is not None
    assert operator is not None
    scheduler = issue_leaf(held.signing, "s", "client", NOW, LEAF_LIFE)
    for client in (operator, scheduler):
        for host in HOSTS:
            handshake(server, held.client_ca_bundle, client, held.server_ca_bundle, host)
    assert parsing.read_certificate(operator.certificate).name == "fairlead:operator"


def test_the_same_once_more_is_no_change() -> None:
    one, held = One(), authority()
    one.put(held)
    before = one.material.server
    one.put(held)
    one.material.renew()
    assert (one.changes, one.material.server) == (1, before)


def test_it_is_renewed_at_two_thirds_of_its_life() -> None:
    one = One()
    one.put(authority())
    before = one.material.server
    one.now = NOW + 17 * DAY
    one.material.renew()
    assert one.material.server == before
    one.now = NOW + 20 * DAY
    one.material.renew()
    assert one.material.server != before
    assert one.changes == 2


def test_after_the_clock_was_ahead_it_is_issued_again() -> None:
    held, one = authority(Phase.STABLE), One()
    one.put(held)
    one.now = NOW + 400 * DAY
    one.material.renew()
    ahead = one.material.server
    one.now = NOW
    one.material.renew()
    server, operator = one.material.server, one.material.operator
    assert server is not None
    assert operator is not None
    assert server != ahead
    for shown in (server, operator):
        assert parsing.read_certificate(shown.certificate).begins <= NOW


@pytest.mark.parametrize("key", ["tls.crt", "tls.key"])
def test_a_secret_that_is_spoilt_or_goes_changes_nothing(key: str) -> None:
    one, held = One(), authority()
    one.put(held)
    before = one.material.state
    one.put(held.data() | {key: b"x"})
    assert one.material.fault.startswith("Secret fairlead-system/fairlead-ca, tls.")
    one.material.remove(("fairlead-system", "fairlead-ca"))
    assert one.material.fault == "Secret fairlead-system/fairlead-ca was deleted"
    assert (one.material.state, one.changes, one.material.authority) == (before, 1, held)
    one.put(held)
    assert one.material.fault == ""


def test_an_authority_that_has_expired_signs_nothing_and_says_so() -> None:
    one = One(now=NOW + 4000 * DAY)
    one.put(authority())
    assert "tls.crt cannot sign: it expired on 2036-11-18: delete the Secret" in one.material.fault
    assert one.material.state is None
