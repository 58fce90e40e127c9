"""While a scheduler is paused its certificate is renewed all the same; it gets none that it did not have."""

from typing import TYPE_CHECKING, cast

from fairlead.control.certificates.issuer import CertificateStep, SchedulerCertificates
from support.pki.authorities import DAY, NOW, KeptSecrets, at_once

if TYPE_CHECKING:
    from fairlead.kube.watch.secrets import Secrets

AFTER = NOW + 21 * DAY


def step(secrets: KeptSecrets, when: object, *paused: str) -> CertificateStep:
    made = SchedulerCertificates(cast("Secrets", secrets), "ca", str, lambda _: {}, lambda: when)  # type: ignore[arg-type,return-value]
    return at_once(made.step({"a": "", "b": ""}, {}, None, paused))


def test_what_is_due_is_renewed_and_nothing_is_begun() -> None:
    secrets = KeptSecrets()
    step(secrets, NOW, "b")
    assert {*secrets.kept} == {"ca", "a"}
    step(secrets, NOW)
    before = dict(secrets.kept)
    step(secrets, AFTER, "b")
    assert {name for name in before if secrets.kept[name] != before[name]} == {"a", "b"}
