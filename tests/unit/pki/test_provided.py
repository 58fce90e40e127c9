"""Certificates that others have made: what is wrong with them, in words that lead to the Secret and to the cure."""

from datetime import timedelta

import pytest

from fairlead.pki.issuing import Pair, create_authority, issue_leaf
from fairlead.pki.provided import CertificateRequirements, find_faults
from support.pki.authorities import DAY, NOW
from support.webhook.tls import between

LIFE = timedelta(days=300)
CA, STRANGE = (create_authority(name, NOW, LIFE) for name in ("ca", "strange"))
HOSTS = frozenset({"fairlead.fairlead-system.svc"})
SERVER = CertificateRequirements("fairlead-system/server", "server", hosts=HOSTS)
CLIENT = CertificateRequirements("fairlead-system/gpu", "client", name="fairlead:scheduler:gpu")
S = issue_leaf(CA, "x", "server", NOW, 30 * DAY, HOSTS)
C = issue_leaf(CA, "fairlead:scheduler:gpu", "client", NOW, 30 * DAY)
OLD = issue_leaf(CA, "x", "server", NOW - 60 * DAY, 30 * DAY, HOSTS)
LATER = issue_leaf(CA, "x", "server", NOW + 60 * DAY, 30 * DAY, HOSTS)


def held(pair: Pair, ca: bytes = CA.certificate) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca}


ROOT = between(now=NOW)
BETWEEN = between(ROOT, now=NOW)
LEAF = issue_leaf(BETWEEN, "x", "server", NOW, 30 * DAY, HOSTS)


@pytest.mark.parametrize(
    ("wanted", "data"),
    [
        (SERVER, held(S)),
        (CLIENT, held(C)),
        (SERVER, held(S, STRANGE.certificate + CA.certificate)),
        (SERVER, held(S) | {"more": b"x"}),
        (SERVER, held(Pair(LEAF.certificate + BETWEEN.certificate, LEAF.key), ROOT.certificate)),
        (SERVER, held(LEAF, BETWEEN.certificate)),
    ],
)
def test_what_is_good(wanted: CertificateRequirements, data: dict[str, bytes]) -> None:
    assert find_faults(wanted, data, NOW) == ()


@pytest.mark.parametrize(
    ("wanted", "data", "said"),
    [
        (SERVER, None, "does not exist: create it, of type kubernetes.io/tls, with tls.crt, tls.key and ca.crt"),
        (SERVER, held(S) | {"tls.crt": b""}, "tls.crt: is missing: set it to the certificate"),
        (SERVER, held(S) | {"tls.key": b""}, "tls.key: is missing: set it to the key of the certificate"),
        (SERVER, held(S) | {"ca.crt": b""}, "ca.crt: is missing: set it to the certificate of the authority"),
        (SERVER, held(S) | {"tls.crt": b"x"}, "tls.crt: holds no certificate in PEM"),
        (SERVER, held(S) | {"ca.crt": b"x"}, "ca.crt: holds no certificate in PEM"),
        (SERVER, held(S) | {"tls.key": b"x"}, "tls.key: is not the key of tls.crt, or has a password"),
        (SERVER, held(S) | {"tls.key": C.key}, "tls.key: is not the key of tls.crt"),
        (SERVER, held(S, STRANGE.certificate), "tls.crt: is not signed by the authority in ca.crt"),
        (
            SERVER,
            held(LEAF, ROOT.certificate),
            "tls.crt: is not signed by the authority in ca.crt: add its issuer there, and",
        ),
        (SERVER, held(OLD), "tls.crt: expired on 2026-10-22 12:00 UTC: renew it"),
        (SERVER, held(LATER), "tls.crt: is not valid before 2027-01-20 11:55 UTC: check the clocks"),
        (SERVER, held(issue_leaf(CA, "x", "client", NOW, DAY, HOSTS)), "tls.crt: is not for server auth: add it to"),
        (CLIENT, held(issue_leaf(CA, CLIENT.name, "server", NOW, DAY)), "tls.crt: is not for client auth"),
        (
            SERVER,
            held(issue_leaf(CA, "x", "server", NOW, DAY, ["a.b"])),
            "is not for fairlead.fairlead-system.svc: add",
        ),
        (
            CLIENT,
            held(issue_leaf(CA, "gpu", "client", NOW, DAY)),
            "its common name is gpu: it must be fairlead:scheduler:",
        ),
    ],
)
def test_what_is_wrong(wanted: CertificateRequirements, data: dict[str, bytes] | None, said: str) -> None:
    [fault] = find_faults(wanted, data, NOW)
    assert fault.startswith(f"Secret {wanted.secret}")
    assert said in fault


def test_an_authority_that_has_expired() -> None:
    found = find_faults(SERVER, held(S), NOW + LIFE + DAY)
    assert [one.split(",", 1)[1][:20] for one in found] == [" tls.crt: expired on", " ca.crt: expired on "]
