"""Filters and scores by strategies: built-in ones, each a field of the rule, and custom ones, which the rule names.

The CRD does not know the parameters of custom strategies, so they are read here, with the strategy's own model. Their
authors are not ours: whatever such a strategy raises is a fault of the rule that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

from fairlead.api import rules as written
from fairlead.api.data import DataEntry
from fairlead.api.errors import FieldPath, InvalidObjectError
from fairlead.api.params import Params, data_names, device_share_names, pod_texts
from fairlead.api.parse import parse_params
from fairlead.api.values import Duration
from fairlead.cel.check import STRING
from fairlead.cel.engine.environment import POD_TYPE
from fairlead.cooperative import Steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_compiler import ExpressionCompiler
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.policy_errors import Fault, in_field
from fairlead.policy.views.faults import RAISED, error_with_place
from fairlead.strategies.contract import (
    CompiledFilter,
    CompiledScore,
    CompiledShare,
    CompiledTexts,
    Filter,
    Normalize,
    Score,
    Strategy,
    TypeOf,
    Use,
    by_no_node,
)
from fairlead.strategies.facts import PodFacts, Unknown
from fairlead.strategies.reads import Reads

_R = TypeVar("_R", bound=Filter | Score)
_NO_TEXTS: Final[CompiledTexts] = MappingProxyType({})
_Compiled = CompiledFilter[Any, Any] | CompiledScore[Any, Any]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Strategy of a rule."""

    strategy: Strategy
    named: FieldPath
    """Field that names it."""
    at: FieldPath
    """Field of its parameters."""
    params: Params | Mapping[str, Any]
    """Its parameters; as they were written for a custom one."""


@dataclass(frozen=True, slots=True)
class StrategyRules:
    """Compiler of the rules by strategies of one policy."""

    builtin: Mapping[str, Strategy]
    custom: Mapping[str, Strategy]
    data: Sequence[DataEntry]
    """Entries of data of the policy."""
    faults: list[Fault]
    """Faults are added here."""
    declared_shares: Sequence[str] = ()
    """Names of the policy's device shares, also of those that do not compile."""
    shares: dict[str, CompiledShare] = field(default_factory=dict)
    """Those that compile, by name."""

    def filter(self, path: FieldPath, rule: written.FilterSpec) -> Filter | None:
        """Return the filter of a rule at a path; None if it has faults."""
        chosen = self._chosen(path, rule)
        if chosen is None:
            return None
        if chosen.strategy.filter is None:
            self.faults.append(in_field(chosen.named, f"{chosen.strategy.name} is not a filter", "use it under scores"))
            return None
        return self._compiled(chosen, chosen.strategy.filter, CompiledFilter)

    def score(self, path: FieldPath, rule: written.ScoreSpec, texts: CompiledTexts = _NO_TEXTS) -> Score | None:
        """Return the score of a rule at a path, with the expressions among its parameters; None if it has faults."""
        chosen = self._chosen(path, rule)
        if chosen is None:
            return None
        if chosen.strategy.score is None:
            self.faults.append(in_field(chosen.named, f"{chosen.strategy.name} is not a score", "use it under filters"))
            return None
        made: Score | None = self._compiled(chosen, chosen.strategy.score, CompiledScore, texts)
        if made is not None and made.scale and rule.normalize is not None:
            said = f"{chosen.strategy.name} has {made.scale}, which stands in place of normalize"
            self.faults.append(in_field((*path, "normalize"), said, f"leave out normalize or {made.scale}"))
            return None
        return made

    def _chosen(self, path: FieldPath, rule: written.FilterSpec | written.ScoreSpec) -> _Chosen | None:
        if rule.strategy is not None:
            name, params = rule.strategy
            return _Chosen(self.builtin[name], (*path, name), (*path, name), params)
        if rule.custom is None:
            raise AssertionError("a rule has an expression or a strategy")
        name, named = rule.custom.name, (*path, "custom", "name")
        if name in self.custom:
            return _Chosen(self.custom[name], named, (*path, "custom", "params"), rule.custom.params)
        if name in self.builtin:
            self.faults.append(in_field(named, f"{name} is built in", f"write {name} as a field of the rule"))
        else:
            known = f"it has {', '.join(sorted(self.custom))}" if self.custom else "it has none"
            self.faults.append(in_field(named, f'this image has no strategy "{name}"', known))
        return None

    def _compiled(
        self, chosen: _Chosen, use: Use[_R], kind: type[_Compiled], texts: CompiledTexts = _NO_TEXTS
    ) -> _R | None:
        if isinstance(chosen.params, Params):
            if self._has_unknown_names(chosen.at, chosen.params):
                return None
            made = use.compile(chosen.params, self.shares, texts)
            self._check_lag(chosen.at, chosen.params, made.reads)
            return made
        try:
            params = parse_params(chosen.params, use.params, chosen.at)
            if self._has_unknown_names(chosen.at, params):
                return None
            made = _sound(use.compile(params, self.shares), kind)
        except InvalidObjectError as error:
            self.faults.extend(map(Fault, error.errors))
        except Exception as error:  # noqa: BLE001 - its author is told
            said = f"the strategy {chosen.strategy.name} failed: {error_with_place(error)}"
            self.faults.append(in_field(chosen.named, said, "this is an error of the strategy, not of the policy"))
        else:
            self._check_lag(chosen.at, params, made.reads)
            return made
        return None

    def _has_unknown_names(self, path: FieldPath, params: Params) -> bool:
        """Add faults for names that the policy does not declare; report whether the rule cannot be compiled."""
        has_unknown_data = self._has_unknown_data(path, params)
        names = [*device_share_names(params)]
        known = f"declared are {', '.join(sorted(self.declared_shares))}" if self.declared_shares else "it has none"
        for where, name in names:
            if name not in self.declared_shares:
                said = f"there is no entry {name!s} in the policy's binding.deviceShare"
                self.faults.append(in_field((*path, *where), said, known))
        return has_unknown_data or any(name not in self.shares for _, name in names)

    def _has_unknown_data(self, path: FieldPath, params: Params) -> bool:
        """Add faults for parameters that name unknown entries of data."""
        declared = {entry.name for entry in self.data}
        known = f"declared are {', '.join(sorted(declared))}" if declared else "the policy declares none"
        unknown = [(where, name) for where, name in data_names(params) if name not in declared]
        for where, name in unknown:
            self.faults.append(in_field((*path, *where), f"there is no entry {name!s} in the policy's data", known))
        return bool(unknown)

    def _check_lag(self, path: FieldPath, params: Params, reads: Reads) -> None:
        """Add a fault for a lag that the author gave, before the time of a value that has none.

        The default lag counts as none there: it is for the entries that tell their time.
        """
        lag = getattr(params, "lag", None)
        if not isinstance(lag, Duration) or lag.seconds == 0 or "lag" not in params.model_fields_set:
            return
        untimed = {entry.name for entry in self.data if not entry.tells_time}
        if names := sorted(name for name, _ in reads.unmeasured if name in untimed):
            does = "does not tell when it was" if len(names) == 1 else "do not tell when they were"
            self.faults.append(in_field((*path, "lag"), f"{', '.join(names)} {does} measured", "leave lag out"))


def _sound(compiled: _R, kind: type[_Compiled]) -> _R:
    """Return what a strategy was compiled to. Raises TypeError if it is something else."""
    if not (isinstance(compiled, kind) and isinstance(compiled.reads, Reads)):
        raise TypeError(f"it compiles to {compiled!r}, not to a {kind.__name__.removeprefix('Compiled')}")
    if len(compiled.reads.learned) > 1:
        raise TypeError("it learns several kinds of outcomes, and a rule may learn one")
    if isinstance(compiled, CompiledScore):
        _check_score(compiled)
    reads = compiled.reads
    if (reads.system or reads.topology or reads.demands) and getattr(compiled, "over", None) is None:
        raise TypeError("it reads a system, a topology or learned requests, which only a score with over gets")
    return compiled


def _check_score(score: CompiledScore[Any, Any]) -> None:
    if score.normalize not in (known := get_args(Normalize)):
        raise TypeError(f"its normalize is {score.normalize!r}, not one of {', '.join(known)}")
    if (score.for_pod is by_no_node) == (score.over is None):
        raise TypeError("its score has for_pod or over, and not both")
    if score.over is not None and (not score.scale or score.normalize != "None"):
        raise TypeError("its score has over, so it says in scale what its values score, and has no normalize")


def pod_texts_of(
    path: FieldPath, rule: written.ScoreSpec, expressions: ExpressionCompiler
) -> Steps[tuple[dict[str, CompiledExpression], bool]]:
    """Compile the expressions among the parameters of a rule, by field; report whether all of them compile."""
    compiled: dict[str, CompiledExpression] = {}
    if rule.strategy is None:
        return compiled, True
    strategy, params = rule.strategy
    wanted = [*pod_texts(params)]
    for name, at, text in wanted:
        made = yield from expressions.compile((*path, strategy, *at), text, POD_TYPE, STRING)
        if made is not None:
            compiled[name] = made
    return compiled, len(compiled) == len(wanted)


def pod_type_of(name: str, expression: CompiledExpression) -> TypeOf:
    """Return the function that gives the type of a pod by an expression."""

    def kind(pod: PodFacts) -> str | Unknown:
        try:
            found: str = expression.for_pod(pod)(None, 0)
        except RAISED as error:
            return error_verdict(error, rule=f"the type of rule {name}", written=expression.written)
        return found

    return kind
