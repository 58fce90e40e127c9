"""When a certificate that our authority has signed is to be another one. Pure but for random keys."""

from datetime import datetime

from fairlead.pki.authority import LEAF_LIFE, Authority
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, Purpose, issue_leaf
from fairlead.pki.parsing import CertificateInfo, read_certificate


def renewed_at(begins: datetime, ends: datetime, serial: int) -> datetime:
    """At two thirds of its life, or up to a tenth of its life earlier: they do not all fall due at once.

    Its serial number decides, so that whoever asks learns the same.
    """
    return begins + (ends - begins) * (2 / 3 - (serial % 1000) / 10_000)


def renewal_reason(
    leaf: CertificateInfo | None, authority: Authority, name: str, hosts: frozenset[str], now: datetime
) -> str:
    """Why it has to be issued anew; empty: it need not."""
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
    """What a replica shows as a server, or the operator as a client: what it has, while that is good."""
    leaf = read_certificate(held.certificate, [authority.client_ca_bundle]) if held is not None else None
    if held is not None and not renewal_reason(leaf, authority, name, hosts, now):
        return held
    return issue_leaf(authority.signing, name, purpose, now, LEAF_LIFE, sorted(hosts))


def scheduler_data(authority: Authority, scheduler: str, now: datetime) -> dict[str, bytes]:
    """What a scheduler's Secret holds: what it shows, and whom it is to know."""
    pair = issue_leaf(authority.signing, scheduler_identity(scheduler), "client", now, LEAF_LIFE)
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.server_ca_bundle}


def server_hosts(service: str, namespace: str, addresses: frozenset[str]) -> frozenset[str]:
    """What a replica is reached under: by schedulers as a service, by the leader at its own address."""
    name = f"{service}.{namespace}.svc"
    return frozenset({name, f"{name}.cluster.local"}) | addresses
