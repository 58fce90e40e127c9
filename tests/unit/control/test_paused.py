"""While a scheduler is paused its certificate is not renewed either."""

from typing import TYPE_CHECKING, cast

from authoritykit import DAY, NOW, KeptSecrets, at_once
from fairlead.control.certificates import Certificates, Passed

if TYPE_CHECKING:
    from fairlead.cluster.secrets import Secrets

AFTER = NOW + 21 * DAY


def step(secrets: KeptSecrets, when: object, *paused: str) -> Passed:
    made = Certificates(cast("Secrets", secrets), "ca", str, lambda _: {}, lambda: when)  # type: ignore[arg-type,return-value]
    return at_once(made.step({"a": "", "b": ""}, {}, None, paused))


def test_what_is_due_is_said_and_not_written() -> None:
    secrets = KeptSecrets()
    assert step(secrets, NOW, "b").unrenewed == {}
    assert {*secrets.kept} == {"ca", "a"}
    step(secrets, NOW)
    before = dict(secrets.kept)
    assert step(secrets, AFTER, "b").unrenewed == {
        "b": "its time is two thirds over; it expires on 2026-12-21 12:00 UTC"
    }
    assert {name for name in before if secrets.kept[name] != before[name]} == {"a"}
    assert step(secrets, AFTER).unrenewed == {}
    assert secrets.kept["b"] != before["b"]
