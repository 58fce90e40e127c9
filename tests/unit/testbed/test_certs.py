import datetime as dt
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed import certs, kubeconfig

_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


@pytest.fixture
def authority(tmp_path: Path) -> certs.Authority:
    return certs.Authority(tmp_path)


def _read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _purposes(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    return {*certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value}


def test_what_it_issues_is_signed_by_it_and_valid_now(authority: certs.Authority) -> None:
    certificate = _read(authority.issue("admin", "me", organizations=["system:masters"]).certificate)
    certificate.verify_directly_issued_by(_read(authority.certificate))
    now = dt.datetime.now(dt.UTC)
    assert certificate.not_valid_before_utc < now < certificate.not_valid_after_utc
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "me"
    assert certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"


def test_only_what_has_hosts_may_serve(authority: certs.Authority) -> None:
    assert _purposes(_read(authority.issue("client", "me").certificate)) == {_CLIENT}
    server = _read(authority.issue("server", "it", hosts=["localhost", "10.96.0.1"]).certificate)
    assert _purposes(server) == {_CLIENT, _SERVER}
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["10.96.0.1"]


_ISSUED_AGAIN = {
    "the same hosts": (["a", "10.0.0.1"], False),
    "fewer hosts": (["a"], False),
    "another address": (["a", "10.0.0.2"], True),
    "another name": (["b"], True),
}


@pytest.mark.parametrize(("hosts", "wanted"), _ISSUED_AGAIN.values(), ids=_ISSUED_AGAIN)
def test_a_certificate_is_issued_again_when_it_does_not_cover_a_host(
    hosts: list[str], wanted: bool, authority: certs.Authority
) -> None:
    before = authority.issue("server", "it", hosts=["a", "10.0.0.1"]).certificate.read_bytes()
    after = certs.Authority(authority.folder).issue("server", "it", hosts=hosts).certificate.read_bytes()
    assert (before != after) is wanted


def test_an_authority_that_is_there_stays(authority: certs.Authority) -> None:
    before = authority.certificate.read_bytes()
    assert certs.Authority(authority.folder).certificate.read_bytes() == before


def test_a_pair_of_which_half_is_missing_is_issued_again(authority: certs.Authority) -> None:
    pair = authority.issue("client", "me")
    pair.key.unlink()
    authority.issue("client", "me")
    assert pair.key.exists()


def test_keys_are_nobody_elses_to_read(authority: certs.Authority, tmp_path: Path) -> None:
    keys = [authority.pair.key, authority.issue("client", "me").key, certs.signing_key(tmp_path).key]
    assert [oct(key.stat().st_mode & 0o777) for key in keys] == ["0o600"] * 3


def test_the_key_of_service_accounts_stays(tmp_path: Path) -> None:
    before = certs.signing_key(tmp_path).key.read_bytes()
    assert certs.signing_key(tmp_path).key.read_bytes() == before


def test_a_kubeconfig_holds_what_it_needs_and_is_the_users_alone(authority: certs.Authority, tmp_path: Path) -> None:
    pair = authority.issue("admin", "me")
    path = kubeconfig.write(
        tmp_path / "new" / "config", server="https://x:1", authority=authority, user="admin", pair=pair
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(tmp_path) not in path.read_text()
    document = yaml.safe_load(path.read_text())
    assert document["clusters"][0]["cluster"]["server"] == "https://x:1"
    assert document["current-context"] == document["contexts"][0]["name"]
    assert document["contexts"][0]["context"] == {"cluster": document["clusters"][0]["name"], "user": "admin"}
    assert {*document["users"][0]["user"]} == {"client-certificate-data", "client-key-data"}
