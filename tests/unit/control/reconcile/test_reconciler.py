"""A pass, where there is nothing."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from fairlead.control.decide.decide import DesiredScheduler
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.reconciler import Reconciler, ReconcileResult
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine
from renderkit import settings

if TYPE_CHECKING:
    from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
    from fairlead.control.reconcile.object_client import ObjectClient


class _Nothing:
    async def get(self, *_: Any) -> None:
        return None

    async def any(self, *_: Any, **__: str) -> bool:
        return False

    async def all(self, *_: Any, **__: str) -> list[Any]:
        return []

    async def list_labelled(self, *_: Any) -> list[Any]:
        return []


class _Nobody:
    async def why(self, *_: Any, **__: bool) -> str:
        return ""


async def _no_facts() -> ClusterFacts:
    raise AssertionError("a certificate would be made, and its coming and going be told without end")


async def _no_note() -> None:
    raise AssertionError("it would be remembered as one of ours")


def test_of_a_scheduler_that_has_gone_nothing_is_asked() -> None:
    passes = Reconciler(
        objects=cast("ObjectClient", _Nothing()),
        foreign=cast("ForeignSchedulers", _Nobody()),
        owner=NamespaceOwner(cast("ObjectClient", _Nothing()), "n"),
        namespace="n",
        engine=TemplateEngine(templates()),
        context=lambda _: asyncio.sleep(0, None),
        refused_callers=lambda _: "",
        now=lambda: 1.0,
    )
    asked = DesiredScheduler(settings=settings(), listed=False, policies=[], exists=False, versions=[])
    passed = passes.reconcile(
        asked, _no_facts, paused=False, known=False, gone=None, noted=False, before=None, begin=_no_note, drifted=print
    )
    assert asyncio.run(passed) == ReconcileResult(gone=True)
