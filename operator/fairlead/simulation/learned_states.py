"""Learned state of a snapshot: what its ConfigMaps say that the rules of policies have learned."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fairlead.learned.published import decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.learned_facts import tables_of
from fairlead.policy.nodes.node_table import Nodes
from fairlead.simulation.snapshot import Raw

_NO_VERSION: Final = {"resourceVersion": ""}


class LearnedStates:
    """Learned state of the rules of policies, which nodes get."""

    def __init__(self, nodes: Nodes, policies: Iterable[CompiledPolicy]) -> None:
        self._nodes = nodes
        self._tables = {
            (policy.name, table.rule, table.meaning): (policy.uid, table)
            for policy in policies
            for table in tables_of(policy)
        }
        nodes.learned.keep(table for _, table in self._tables.values())

    def put(self, raw: Raw) -> None:
        """Take a ConfigMap; one that belongs to no rule, or to one with another meaning, is left out.

        Raises msgspec.DecodeError if it is no object.
        """
        if not self._tables:
            return
        obj = msgspec.json.decode(raw)
        state = decode({**obj, "metadata": {**_NO_VERSION, **obj["metadata"]}})
        if (
            state is None
            or (found := self._tables.get((state.rule.policy, state.rule.name, state.rule.meaning))) is None
        ):
            return
        uid, table = found
        pairs: Any = state.document.value
        if uid in ("", state.rule.uid):  # a policy from a file is the one of that name
            self._nodes.put_learned(table, state.number, None if state.document.fault else pairs or {})
