"""From a policy as it was written to one that can be evaluated, or to everything that is wrong with it."""

import hashlib
import json
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from fairlead.api import rules as written
from fairlead.api.errors import FieldPath
from fairlead.api.selectors import LabelSelector
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.check import BOOL, NUMBER, STRING, VALUE, Environment, ExpressionError, Want, check
from fairlead.cel.cost import BUDGET, NODES, PODS
from fairlead.cel.environment import CONDITION, PROTECTION, RULE, Scope
from fairlead.policy.compiled import (
    AnnotationRule,
    CompiledPolicy,
    ExpressionRule,
    FilterRule,
    Match,
    RuleKind,
    RuleReport,
    ScoreRule,
    Selector,
)
from fairlead.policy.errors import Fault, PolicyError, in_expression, in_field
from fairlead.policy.expressions import Compiled
from fairlead.policy.rules import filter_of, score_of
from fairlead.strategies.labels import matcher
from fairlead.strategies.seam import Filter, Score, Strategy

T = TypeVar("T")
_REFERENCE: Final = re.compile(r"\bvariables\s*\.\s*([A-Za-z_]\w*)")
_TEXTS: Final = re.compile(r"""//[^\n]*|"{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator's settings and installation allow."""

    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    annotation_prefixes: tuple[str, ...] = ("fairlead.dev/",)


def compile_policy(policy: SchedulerExtenderPolicy, rules: Rules) -> CompiledPolicy:
    """Compile at one stretch. Raises PolicyError."""
    return finish(compile_steps(policy, rules))


def finish(steps: Generator[None, None, T]) -> T:
    """Run a computation that pauses to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def compile_steps(policy: SchedulerExtenderPolicy, rules: Rules) -> Generator[None, None, CompiledPolicy]:
    """Compile, pausing after each expression so that others are served meanwhile. Raises PolicyError at the end."""
    compiler = _Compiler(policy, rules)
    yield from compiler.run()
    if compiler.faults:
        raise PolicyError(tuple(compiler.faults))
    return compiler.result()


@dataclass(slots=True)
class _Compiler:
    policy: SchedulerExtenderPolicy
    rules: Rules
    faults: list[Fault] = field(default_factory=list)
    reports: list[RuleReport] = field(default_factory=list)
    variables: dict[str, Compiled] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # variables that do not compile: whoever uses them is not to blame
    environments: dict[str, Environment] = field(default_factory=dict)
    conditions: list[ExpressionRule] = field(default_factory=list)
    filters: list[FilterRule] = field(default_factory=list)
    scores: list[ScoreRule] = field(default_factory=list)
    protections: list[ExpressionRule] = field(default_factory=list)
    annotations: list[AnnotationRule] = field(default_factory=list)

    def run(self) -> Iterator[None]:
        spec = self.policy.spec
        yield from self._variables()
        for at, condition in enumerate(spec.match.conditions):
            path = ("spec", "match", "conditions", at, "expression")
            if made := self._expression(path, condition.expression, CONDITION, BOOL):
                self.conditions.append(ExpressionRule(condition.name, made))
                self._report(condition.name, "Condition", made)
            yield
        for at, rule in enumerate(spec.filters):
            self._filter(("spec", "filters", at), rule)
            yield
        for at, score in enumerate(spec.scores):
            self._score(("spec", "scores", at), score)
            yield
        for at, protection in enumerate(spec.preemption.protect):
            path = ("spec", "preemption", "protect", at, "expression")
            if made := self._expression(path, protection.expression, PROTECTION, BOOL):
                self.protections.append(ExpressionRule(protection.name, made))
                self._report(protection.name, "Protection", made)
            yield
        for at, annotation in enumerate(spec.binding.annotations if spec.binding else ()):
            self._annotation(("spec", "binding", "annotations", at), annotation)
            yield

    def result(self) -> CompiledPolicy:
        spec, metadata = self.policy.spec, self.policy.metadata
        return CompiledPolicy(
            name=metadata.name,
            uid=metadata.uid,
            generation=str(metadata.generation) if metadata.generation else spec_hash(self.policy),
            scheduler_name=spec.scheduler_name,
            enforced=spec.mode == "Enforce",
            priority=spec.priority,
            match=Match(
                None if spec.match.namespaces is None else frozenset(spec.match.namespaces),
                _selector(spec.match.namespace_selector),
                _selector(spec.match.pod_selector),
                tuple(self.conditions),
            ),
            data=spec.data,
            filters=tuple(self.filters),
            scores=tuple(self.scores),
            protections=tuple(self.protections),
            annotations=tuple(self.annotations),
            rejects_on_failure=spec.failure_policy == "Fail",
            reports=tuple(self.reports),
        )

    def _variables(self) -> Iterator[None]:
        """Each after those that it uses."""
        declared = {variable.name: (at, variable) for at, variable in enumerate(self.policy.spec.variables)}
        uses = {name: _references(variable.expression) & set(declared) for name, (_, variable) in declared.items()}
        waiting = dict(declared)
        while waiting:
            ready = [name for name in waiting if not uses[name] & set(waiting)]
            if not ready:
                circle = _circle(next(iter(waiting)), {name: uses[name] & set(waiting) for name in waiting})
                for name in waiting:
                    at, _ = waiting[name]
                    if name in circle:
                        hint = "let one of them not use the others"
                        path = ("spec", "variables", at, "expression")
                        self.faults.append(in_field(path, f"uses itself: {' -> '.join(circle)}", hint))
                    self.broken.add(name)
                return
            for name in ready:
                at, variable = waiting.pop(name)
                made = self._expression(("spec", "variables", at, "expression"), variable.expression, PROTECTION, VALUE)
                if made is None:
                    self.broken.add(name)
                else:
                    self.variables[name] = made
                    self.environments.clear()
                yield

    def _expression(self, path: FieldPath, text: str, scope: Scope, want: Want) -> Compiled | None:
        """Check an expression; what is wrong with it is noted down."""
        if _references(text) & self.broken:
            return None  # what is wrong is said where the variable stands
        try:
            expression = check(text, self._environment(scope), want)
        except ExpressionError as error:
            for found in error.diagnostics:
                self.faults.append(in_expression(path, found, text))
            return None
        used = {name for name in _references(text) if name in self.variables}
        made = Compiled(expression, _with_their_own(used, self.variables))
        if made.worst_case > BUDGET:
            fault = (
                f"may take {made.worst_case:,} loop steps on {NODES:,} nodes with {PODS} pods each, {BUDGET:,} are allowed"
            )
            self.faults.append(in_field(path, fault, "loop over the pods of a node once, not inside of another loop"))
            return None
        _ = made.evaluation
        return made

    def _environment(self, scope: Scope) -> Environment:
        if scope.what not in self.environments:
            types = {
                name: variable.expression.type
                for name, variable in self.variables.items()
                if variable.roots <= set(scope.roots)
            }
            self.environments[scope.what] = Environment(scope, types, [entry.name for entry in self.policy.spec.data])
        return self.environments[scope.what]

    def _filter(self, path: FieldPath, rule: written.Filter) -> None:
        expression: Compiled | None = None
        if rule.strategy is not None:
            strategy, params = rule.strategy
            make = self.rules.strategies[strategy].filter
            if make is None:
                self.faults.append(in_field((*path, strategy), "is no filter", "use it under scores"))
                return
            made: Filter = make(params)
        else:
            compiled = self._expression((*path, "expression"), rule.expression or "", RULE, BOOL)
            if compiled is None:
                return
            expression = compiled
            made = filter_of(compiled, rule.reason or rule.name, resolvable=bool(rule.resolvable))  # type: ignore[assignment]
        resolvable = made.resolvable if rule.resolvable is None else rule.resolvable
        self.filters.append(FilterRule(rule.name, made, rule.on_error == "Reject", resolvable, expression))
        self._report(rule.name, "Filter", expression or made)

    def _score(self, path: FieldPath, rule: written.Score) -> None:
        expression: Compiled | None = None
        if rule.strategy is not None:
            strategy, params = rule.strategy
            make = self.rules.strategies[strategy].score
            if make is None:
                self.faults.append(in_field((*path, strategy), "is no score", "use it under filters"))
                return
            made: Score = make(params)
        else:
            compiled = self._expression((*path, "expression"), rule.expression or "", RULE, NUMBER)
            if compiled is None:
                return
            expression = compiled
            made = score_of(compiled)  # type: ignore[assignment]
        self.scores.append(ScoreRule(rule.name, made, rule.weight, rule.normalize or made.normalize, expression))
        self._report(rule.name, "Score", expression or made)

    def _annotation(self, path: FieldPath, rule: written.Annotation) -> None:
        if not rule.key.startswith(self.rules.annotation_prefixes):
            allowed = ", ".join(self.rules.annotation_prefixes)
            self.faults.append(in_field((*path, "key"), f"{rule.key!r} is not allowed", f"it must begin with {allowed}"))
        if made := self._expression((*path, "expression"), rule.expression, RULE, STRING):
            self.annotations.append(AnnotationRule(rule.key, made, rule.on_error == "Reject"))
            self._report(rule.key, "Annotation", made)

    def _report(self, name: str, kind: RuleKind, made: Compiled | Filter | Score) -> None:
        if isinstance(made, Compiled):
            uses = tuple(sorted(".".join(path) for path in made.paths))
            self.reports.append(RuleReport(name, kind, made.evaluation, uses))
        else:
            self.reports.append(RuleReport(name, kind, "Lowered", _uses(made)))


def _uses(rule: Filter | Score) -> tuple[str, ...]:
    reads = rule.reads
    node = [".".join(("node", *path)) for path in reads.node]
    amounts = [f"{name}.{key}" for name in ("free", "requested", "allocatable", "data") for key in getattr(reads, name)]
    return tuple(sorted([*node, *amounts, *(["pods"] if reads.pods else []), *(["now"] if reads.now else [])]))


def _references(text: str) -> set[str]:
    """The variables that an expression names."""
    return set(_REFERENCE.findall(_TEXTS.sub("''", text)))


def _with_their_own(names: set[str], variables: Mapping[str, Compiled]) -> dict[str, Compiled]:
    """Variables, and those that they use."""
    found = {name: variables[name] for name in names}
    for name in names:
        found.update(variables[name].variables)
    return found


def _circle(start: str, uses: Mapping[str, set[str]]) -> list[str]:
    """A way from a variable through those that it uses that comes back to where it was."""
    way = [start]
    while True:
        following = sorted(uses[way[-1]])[0]
        if following in way:
            return [*way[way.index(following) :], following]
        way.append(following)


def _selector(written_selector: LabelSelector | None) -> Selector | None:
    return None if written_selector is None else matcher(written_selector)


def spec_hash(policy: SchedulerExtenderPolicy) -> str:
    """What stands for the generation of a policy that comes from a file."""
    text = json.dumps(policy.spec.model_dump(mode="json", by_alias=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
