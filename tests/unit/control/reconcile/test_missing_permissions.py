"""Rights that are missing are told until what needs them has gone well."""

import logging

import pytest

from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ForbiddenError, UnreachableError, missing_rule
from fairlead.kube.resources import PODS

MAY_NOT = 'he cannot patch resource "pods" in API group ""'
MAY_NOT += missing_rule(MAY_NOT)


def test_what_is_said(caplog: pytest.LogCaptureFixture) -> None:
    lacking = MissingPermissions()
    lacking.record("nobody is woken", UnreachableError("patch", PODS, "no answer"))
    lacking.record("nobody is woken", ForbiddenError("patch", PODS, "exceeded quota: pods", status=403))
    assert not lacking.messages
    for what in ("nobody is woken", "events cannot be posted"):
        lacking.record(what, ForbiddenError("patch", PODS, MAY_NOT, status=403))
    assert lacking.messages == tuple(
        f"{what}: patch pods: 403: {MAY_NOT}" for what in ("events cannot be posted", "nobody is woken")
    )
    for has in (True, False):
        assert ("nobody is woken" in lacking) is has
        lacking.clear("nobody is woken")
    assert lacking.messages == (f"events cannot be posted: patch pods: 403: {MAY_NOT}",)
    assert [one.levelno for one in caplog.records] == [logging.WARNING] * 4
