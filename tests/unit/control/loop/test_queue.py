"""What is known of a scheduler after a reconcile that failed."""

import msgspec
import pytest

from fairlead.control.loop.queue import after_failure
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.kube.errors import refusal
from fairlead.kube.resources import PODS

RIGHT = 'pods is forbidden: he cannot create resource "pods" in API group "" in the namespace "n"'


@pytest.mark.parametrize(
    ("said", "lacks"), [(RIGHT, True), ("exceeded quota: q", False), ("denied by a webhook of others", False)]
)
def test_not_all_that_is_forbidden_is_for_want_of_a_right(said: str, *, lacks: bool) -> None:
    body = msgspec.json.encode({"code": 403, "reason": "Forbidden", "message": said})
    result = after_failure(ReconcileResult(started_with_ca="x"), refusal("create", PODS, 403, body))
    assert (said in result.missing_permission, said in result.failed) == (lacks, not lacks)
    assert result.started_with_ca == "x"
