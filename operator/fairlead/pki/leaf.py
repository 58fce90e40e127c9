"""Renewal of certificates that our authority signs. Pure except random keys."""

from datetime import datetime

from fairlead.pki.authority import LEAF_LIFE, Authority
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, Purpose, issue_leaf
from fairlead.pki.parsing import CertificateInfo, read_certificate


def renewed_at(begins: datetime, ends: datetime, serial: int) -> datetime:
    """Return the time of renewal: at two thirds of the lifetime, or up to a tenth of the lifetime earlier.

    The serial number decides, so that renewals are spread, and every replica computes the same time.
    """
    return begins + (ends - begins) * (2 / 3 - (serial % 1000) / 10_000)


def renewal_reason(
    leaf: CertificateInfo | None, authority: Authority, name: str, hosts: frozenset[str], now: datetime
) -> str:
    """Return why a certificate has to be renewed; "" if it need not be."""
    if leaf is None:
        return "there is no certificate"
    if leaf.issuer != read_certificate(authority.signing.certificate).key:
        return "another authority signs now" if leaf.issuer else "our authority has not signed it"
    if leaf.name != name:
        return f"it is for {leaf.name}"
    if leaf.hosts != hosts:
        return "it is for other hosts"
    if now >= renewed_at(leaf.begins, leaf.ends, leaf.serial):
        return "two thirds of its lifetime are over"
    return ""


def current_leaf(
    authority: Authority, name: str, purpose: Purpose, hosts: frozenset[str], now: datetime, held: Pair | None
) -> Pair:
    """Return the certificate of a replica or of the operator: the held one while it is good, else a new one."""
    leaf = read_certificate(held.certificate, [authority.client_ca_bundle]) if held is not None else None
    if held is not None and not renewal_reason(leaf, authority, name, hosts, now):
        return held
    return issue_leaf(authority.signing, name, purpose, now, LEAF_LIFE, sorted(hosts))


def scheduler_data(authority: Authority, scheduler: str, now: datetime) -> dict[str, bytes]:
    """Return the data of a scheduler's Secret, with a new certificate."""
    pair = issue_leaf(authority.signing, scheduler_identity(scheduler), "client", now, LEAF_LIFE)
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.server_ca_bundle}


def server_hosts(service: str, namespace: str, addresses: frozenset[str]) -> frozenset[str]:
    """Return the hosts of a replica's certificate: the Service for schedulers, its own addresses for the leader."""
    name = f"{service}.{namespace}.svc"
    return frozenset({name, f"{name}.cluster.local"}) | addresses
