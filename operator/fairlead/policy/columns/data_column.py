"""Column of a policy's data, which its rules read on every node."""

from collections.abc import Sequence

from fairlead.policy.columns.column import Column
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import differing, reader, reads_of, timed_anew
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.time_units import SECOND_NS


class DataColumn(Column):
    """A policy's data on every node. It depends on no pod; changes of it are entries in the journal of the nodes."""

    def __init__(self, policy: CompiledPolicy, nodes: Nodes, tally: RuleErrorTally) -> None:
        super().__init__(policy=policy, name="data", reads=reads_of(policy.data), tally=tally)
        self.nodes = nodes
        self.read = reader(policy.data)
        self._unmeasured = nodes.measurements.unmeasured.setdefault(policy.name, set())
        self._unmeasured |= policy.reads.unmeasured

    def compute(self, slots: Sequence[int], now: int) -> None:
        """Read the data from the nodes in these slots."""
        nodes, policy = self.nodes, self.policy.name
        self.forget_ends(slots)
        for slot in slots:
            view = nodes.views[slot]
            if view is None:
                continue
            data, until = self.read(view.node, now)
            self.keep_until(until, slot)
            before = nodes.data_of(policy, slot)
            nodes.put_data(policy, slot, data, differing(before, data), self._timed(view, before, data))

    def _timed(self, view: NodeView, before: Data | None, data: Data) -> frozenset[str]:
        """Return the names of the entries whose new time makes other pods than before too recent to be measured."""
        names = timed_anew(before, data)
        if not names or before is None:
            return names
        found = set[str]()
        for name, lag_s in self._unmeasured:
            if name in names:
                old, new = before.times.get(name), data.times.get(name)
                lag_ns = lag_s * SECOND_NS
                if old is None or new is None or view.placed_between(old - lag_ns, new - lag_ns):
                    found.add(name)
        return frozenset(found)
