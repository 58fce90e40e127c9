"""By what a scheduler of others is known."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.control.reconcile.foreign_owner import is_lease_held, scheduler_names

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("image", "words", "names"),
    [
        ("x", ["--scheduler-name=volcano"], "volcano"),
        ("x", ["vc-scheduler", "--scheduler-name", "volcano", "--v=3"], "volcano"),
        (
            "x",
            ["-scheduler-name=a", "--default-scheduler-name=b", "--schedulerName=c", "--scheduler_name=d"],
            "a b c d",
        ),
        ("x", ["--scheduler-names=a,b", "c", "--other=d"], "a b c"),
        ("x", ["sh", "-c", "exec /scheduler --scheduler-name='volcano' --leader-elect=false"], "volcano"),
        ("x", ["--scheduler-name"], ""),
        ("x", ["--scheduler=volcano", "volcano", "--name=volcano"], ""),
        ("x", [], ""),
        ("docker.io/volcanosh/vc-scheduler:v1.9.0", ["--leader-elect=false"], "volcano"),
        ("docker.io/volcanosh/vc-scheduler@sha256:0123", ["--scheduler-name=mine"], "mine volcano"),
        ("apache/yunikorn:scheduler-1.6.0", [], "yunikorn"),
        ("registry.example:5000/koordinator-sh/koord-scheduler:v1", [], "koord-scheduler"),
        ("kube-batch", [], "kube-batch"),
        ("registry.k8s.io/kube-scheduler:v1.33.0", [], ""),
    ],
)
def test_which_scheduler_a_container_is(image: str, words: list[str], names: str) -> None:
    assert scheduler_names(image, words) == {*names.split()}


@pytest.mark.parametrize(
    ("spec", "held"),
    [
        ({"holderIdentity": "x", "renewTime": "2026-11-22T11:59:50.000000Z", "leaseDurationSeconds": 15}, True),
        ({"holderIdentity": "x", "renewTime": "2026-11-22T11:58:50.000000Z", "leaseDurationSeconds": 15}, True),
        ({"holderIdentity": "x", "renewTime": "2026-11-22T11:58:40.000000Z", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "", "renewTime": "2026-11-22T11:59:50.000000Z", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "x", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "x", "renewTime": "some day", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "x", "renewTime": "2026-11-22T11:59:50Z", "leaseDurationSeconds": 10**12}, False),
        (None, False),
    ],
)
def test_a_lease_is_held_while_somebody_renews_it(spec: Any, *, held: bool) -> None:
    assert is_lease_held({"spec": spec}, NOW) is held
