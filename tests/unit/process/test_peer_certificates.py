"""Which certificate is whose, by the Secrets that hold them."""

import logging
import ssl
from datetime import datetime, timedelta

import msgspec
import pytest

from fairlead.documents import FORMAT
from fairlead.kube.watch.secrets import Certificate, PublicSecret, SecretMetadata
from fairlead.pki import parsing
from fairlead.pki.issuing import Pair, create_authority, issue_leaf
from fairlead.process.peer_certificates import CERTIFICATES_MAX, PREVIOUS_FOR, PeerCertificates
from fairlead.render.object_names import PREVIOUS_SECRET
from support.webhook.tls import NOW, YEAR, of_no_version

CA = create_authority("ca", NOW, YEAR)
A, B, *OTHERS = (issue_leaf(CA, "gpu", "client", NOW, timedelta(days=30)) for _ in range(8))
SHORT = issue_leaf(CA, "gpu", "client", NOW, timedelta(hours=1))


class Held:
    """What a Secret has held, and when it is now."""

    def __init__(self) -> None:
        self.now: datetime = NOW
        self.leaves = PeerCertificates(lambda: self.now)

    def put(self, pair: Pair | bytes, name: str = "s") -> None:
        certificate = pair if isinstance(pair, bytes) else pair.certificate
        self.leaves.put(PublicSecret(SecretMetadata(name, "here"), Certificate(certificate)))

    def remember(self, said: bytes) -> None:
        self.leaves.put(PublicSecret(SecretMetadata(PREVIOUS_SECRET, "here"), Certificate(before=said)))

    def holds(self, pair: Pair, name: str = "s") -> bool:
        return self.leaves.holds(name, leaf(pair))


def leaf(pair: Pair) -> str:
    return parsing.fingerprint(ssl.PEM_cert_to_DER_cert(pair.certificate.decode()))


def test_the_one_in_the_secret_counts_and_no_other_of_the_same_name() -> None:
    held = Held()
    assert not held.holds(A)
    held.put(Pair(A.certificate + CA.certificate, A.key))  # what is between it and its authority comes after it
    assert (held.holds(A), held.holds(B), held.holds(A, "another"), held.holds(CA)) == (True, False, False, False)


def test_the_one_before_counts_for_a_day_and_not_longer_than_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    held = Held()
    for pair in (SHORT, A, B):
        held.put(pair)
        held.put(pair)
    assert (held.holds(SHORT), held.holds(A), held.holds(B)) == (True, True, True)
    held.now += timedelta(hours=2)
    assert (held.holds(SHORT), held.holds(A), held.holds(B)) == (False, True, True)
    held.put(B)  # listed again
    held.now = NOW + PREVIOUS_FOR
    assert (held.holds(A), held.holds(B)) == (False, True)
    assert [one.getMessage() for one in caplog.records] == ["certificate.changed"] * 2


def test_what_was_before_counts_no_longer_because_it_changes_again() -> None:
    held = Held()
    held.put(A)
    held.put(B)
    held.now += PREVIOUS_FOR / 2
    held.put(OTHERS[0])
    held.now = NOW + PREVIOUS_FOR
    assert (held.holds(A), held.holds(B), held.holds(OTHERS[0])) == (False, True, True)


def test_one_that_comes_back_counts_as_long_as_it_lasts() -> None:
    held = Held()
    for pair in (A, B, A):
        held.put(pair)
    held.now += 2 * PREVIOUS_FOR
    assert (held.holds(A), held.holds(B)) == (True, False)


def test_few_are_kept() -> None:
    held = Held()
    pairs = [A, B, *OTHERS]
    for pair in pairs:
        held.put(pair)
    assert [held.holds(pair) for pair in pairs] == [False] * (len(pairs) - CERTIFICATES_MAX) + [True] * CERTIFICATES_MAX


def test_a_secret_that_is_deleted_takes_them_with_it_and_one_that_is_spoilt_does_not() -> None:
    held = Held()
    held.put(A)
    held.put(B)
    held.put(b"nothing")
    held.put(of_no_version(A.certificate))
    assert (held.holds(A), held.holds(B)) == (True, True)
    held.leaves.remove(("here", "s"))
    held.leaves.remove(("here", "unknown"))
    assert (held.holds(A), held.holds(B)) == (False, False)


def started(held: Held, now: datetime | None = None) -> Held:
    """Another replica, told of what the Secret says that the leader writes."""
    made = Held()
    made.now = now or held.now
    made.remember(msgspec.json.encode(held.leaves.before()))
    return made


def test_a_replica_that_starts_knows_what_was_before() -> None:
    held = Held()
    assert held.leaves.before() == {}
    assert held.leaves.document.value is None
    for pair in (A, B):
        held.put(pair)
    assert held.leaves.before() != held.leaves.document.value
    fresh = started(held)
    assert fresh.leaves.before() == {}  # of a Secret that is not there nothing counts
    assert not fresh.holds(A)
    fresh.put(B)
    assert (fresh.holds(A), fresh.holds(B), fresh.holds(A, "another")) == (True, True, False)
    assert fresh.leaves.before() == fresh.leaves.document.value == held.leaves.before()
    fresh.put(OTHERS[0])
    assert [fresh.holds(pair) for pair in (A, B, OTHERS[0])] == [True, True, True]
    assert len(fresh.leaves.before()["s"]) == 2
    fresh.now += PREVIOUS_FOR
    assert [fresh.holds(pair) for pair in (A, B, OTHERS[0])] == [False, False, True]
    assert fresh.leaves.before() == {} != fresh.leaves.document.value


def test_nothing_is_remembered_of_a_secret_that_was_deleted() -> None:
    held = Held()
    for pair in (A, B):
        held.put(pair)
    fresh = started(held)
    fresh.put(B)
    fresh.leaves.remove(("here", "s"))
    fresh.put(OTHERS[0])
    assert [fresh.holds(pair) for pair in (A, B, OTHERS[0])] == [False, False, True]
    assert fresh.leaves.before() == {} != fresh.leaves.document.value  # so that it is written anew
    fresh.leaves.remove(("here", PREVIOUS_SECRET))
    assert fresh.leaves.document.value is None


@pytest.mark.parametrize("said", [b"", b"{", b'{"s": 1}', b'{"s": {"x": "2027-01-01T00:00:00"}}'])
def test_what_is_remembered_may_be_spoilt(said: bytes) -> None:
    held = Held()
    held.put(A)
    held.remember(said)
    assert held.leaves.before() == {}
    assert held.holds(A)


def test_what_is_remembered_counts_for_a_day_whoever_wrote_it() -> None:
    held = Held()
    held.put(B)
    held.remember(msgspec.json.encode({"s": {leaf(A): NOW + YEAR}}))
    assert held.holds(A)
    held.now += PREVIOUS_FOR
    assert not held.holds(A)


def test_keys_are_not_read() -> None:
    secret = {"metadata": {"name": "s"}, "data": {"tls.crt": "YQ==", "tls.key": "no base64"}, "type": "x"}
    assert msgspec.json.decode(msgspec.json.encode(secret), type=PublicSecret).data.certificate == b"a"
    assert msgspec.json.decode(b'{"metadata":{"name":"s"}}', type=PublicSecret).data.certificate == b""


def test_what_a_newer_version_remembers_changes_nothing_and_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    for pair in (A, B):
        held.put(pair)
    metadata = SecretMetadata(PREVIOUS_SECRET, "here", annotations={FORMAT: "2"})
    held.leaves.put(PublicSecret(metadata, Certificate(before=b"{}")))
    assert (held.holds(A), held.holds(B)) == (True, True)
    assert held.leaves.document.fault.startswith(f"Secret {PREVIOUS_SECRET}, the previous certificates of callers, has")
    assert "certificates_before.unreadable" in [one.message for one in caplog.records]
