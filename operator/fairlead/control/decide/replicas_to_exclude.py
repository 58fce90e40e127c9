"""Replicas that are asked to step aside, because they alone cannot measure what others can. Pure."""

from collections.abc import Callable, Collection

from fairlead.replica_state import DataEntryState, ReplicaState, ReplicaStates


def replicas_to_exclude(states: ReplicaStates, ready: Collection[str]) -> frozenset[str]:
    """Return the replicas that lack all values of an entry which another replica has.

    That one has to be ready and to lack nothing, so that a replica stays which answers every call.
    """
    known = {name: one for name, one in states.items() if isinstance(one, ReplicaState)}
    lacking = {name: _entries(one, lambda entry: entry.is_cut_off) for name, one in known.items()}
    well = [known[name] for name, entries in lacking.items() if name in ready and not entries]
    had = frozenset[tuple[str, str, str]]().union(*(_entries(one, lambda entry: entry.has_value) for one in well))
    return frozenset(name for name, entries in lacking.items() if entries & had)


def _entries(state: ReplicaState, chosen: Callable[[DataEntryState], bool]) -> frozenset[tuple[str, str, str]]:
    """Return entries by policy, serving generation and name."""
    return frozenset(
        (name, policy.serving, one.name)
        for name, policy in state.policies.items()
        for one in policy.data
        if chosen(one)
    )
