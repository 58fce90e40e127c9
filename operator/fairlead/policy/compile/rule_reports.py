"""Reports on the rules of one policy: where each runs and what it reads, for lint and status."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import RuleKind, RuleReport
from fairlead.strategies.contract import Filter, Score
from fairlead.strategies.reads import EVERY, Path


@dataclass(frozen=True, slots=True)
class RuleReports:
    """Reports on the rules, in the order in which they were compiled."""

    sources: Mapping[str, str]
    """Where the values of each entry of data come from."""
    listed: list[RuleReport] = field(default_factory=list)

    def add(
        self,
        name: str,
        kind: RuleKind,
        compiled: CompiledExpression | Filter | Score,
        paths: Collection[Path] | None = None,
    ) -> None:
        """Add the report on a rule; `paths` are what it reads if it has more than one expression."""
        if isinstance(compiled, CompiledExpression):
            uses = tuple(sorted(self._named(path) for path in (compiled.paths if paths is None else paths)))
            self.listed.append(RuleReport(name, kind, compiled.evaluation, uses))
        else:
            self.listed.append(RuleReport(name, kind, "ByteCode", self._uses(compiled)))

    def _named(self, path: Sequence[str]) -> str:
        """Return a path that a rule reads, and of an entry of data where its values come from."""
        text = ".".join(path)
        source = self.sources.get(path[1], "") if path[0] == "data" and len(path) > 1 else ""
        return f"{text} ({source})" if source else text

    def _uses(self, rule: Filter | Score) -> tuple[str, ...]:
        reads = rule.reads
        objects = {"pod": reads.pod, "namespaceObject": reads.namespace, "node": reads.node}
        fields = [".".join((root, *path)) for root, paths in objects.items() for path in paths]
        named = ("request", "limit", "free", "requested", "allocatable", "capacity", "limits", "devices")
        amounts = [f"{name}.{key}".removesuffix(f".{EVERY}") for name in named for key in getattr(reads, name)]
        amounts += [self._named(("data", name)) for name in reads.data]
        amounts += [f"data.{name} ({lag_s}s before)" for name, lag_s in reads.unmeasured]
        amounts += [f"system.{name}" for read in reads.system for name in read.resources]
        amounts += [f"members by {level}" for read in reads.topology for level in read.levels]
        amounts += [f"learned requests.{name}" for read in reads.demands for name in read.resources]
        amounts += ["learned outcomes" for _ in reads.learned]
        others = {"pods": reads.pods, "placements": reads.placements, "now": reads.now}
        return tuple(sorted([*fields, *amounts, *(name for name, is_read in others.items() if is_read)]))
