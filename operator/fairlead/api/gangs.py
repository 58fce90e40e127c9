"""Groups of pods that a policy holds until all of their members can start."""

from typing import Annotated

from fairlead.api.params import Params
from fairlead.api.values import Duration, Expression, Name, within


class Gang(Params):
    """Group of pods that start together or not at all.

    Until as many members as size says have a node that the scheduler keeps for them, none starts. Pods with
    spec.schedulingGroup are left to the scheduler, which has groups of its own.
    """

    name: Name
    """Name of the entry. The pods that it refuses are counted under a filter named binding/ and this name, so no entry
    of deviceShare has it."""
    group: Expression
    """CEL that gives the name of the pod's group within its namespace, a string of at most 253 characters. Empty: the
    pod is in no group by this entry. It can read of the pod what is kept of pods on nodes, as these tell which groups
    have started: name, namespace, uid, labels, ownerReferences, and annotations with their keys written out."""
    size: Expression
    """CEL that gives how many members must find room together, from 1 to 500. With 1 the pod is in no group. It can
    read pod, namespaceObject, and variables that read only these."""
    hold_for: Annotated[Duration, within("5s", "2m")] = Duration("30s")
    """Time for which members that have found room are held for the others, from 5s to 2m. 30s when absent."""
