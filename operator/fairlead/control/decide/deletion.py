"""Order in which objects are deleted."""

from collections.abc import Sequence
from typing import Final

from fairlead.render.object_names import Object

_FIRST: Final = ("Deployment", "PodDisruptionBudget", "NetworkPolicy", "Lease", "ConfigMap", "Secret")


def deletion_order(objects: Sequence[Object]) -> list[Object]:
    """Return objects in the order of deletion: workloads before their certificates, permissions last."""
    return sorted(objects, key=lambda one: _FIRST.index(one["kind"]) if one["kind"] in _FIRST else len(_FIRST))
