"""The chart's bindings of schedulers, where there is no chart."""

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.control.reconcile.object_client import ref_of
from fairlead.render.object_names import ObjectNames
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS, subjects
from testbed.api import Api, Object


def chart_bindings(namespace: str) -> list[Object]:
    """The bindings as the chart creates them."""
    return [
        one.body(namespace)
        | {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": one.role_kind, "name": one.role}}
        for one in SCHEDULER_BINDINGS
    ]


@contextmanager
def bound_in(api: Api, namespace: str, *schedulers: str) -> Iterator[None]:
    """The bindings of a namespace while a test needs them, with these schedulers."""
    made = chart_bindings(namespace)
    accounts = subjects(namespace, (ObjectNames(one, namespace).object_name for one in schedulers))
    try:
        for one in [{**one, "subjects": accounts} if accounts else one for one in made]:
            api.apply(ref_of(one).path, one)
        yield
    finally:
        for one in made:
            api.delete(ref_of(one).path)
