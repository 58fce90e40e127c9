"""The expressions of one policy: variables first, each after those that it uses, then whatever uses them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.api.rules import Variable
from fairlead.cel.analysis.cost import BUDGET, ENGINE_BUDGET, ENGINE_COST, NODES, PODS
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.check import PARTS_MAX, VALUE, Environment, ExpressionError, Want, check_steps
from fairlead.cel.engine.environment import PROTECTION, Scope
from fairlead.cel.functions.overloads import PATTERN_METHODS
from fairlead.cel.functions.regex import PATTERNS_MAX
from fairlead.cel.syntax.ast import Call, Checked, Const, Ident, walk
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.source_refs import references
from fairlead.cooperative import Steps, about
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.policy_errors import Fault, in_expression, in_field

PATTERNS_OF_POLICY_MAX: Final = 128
"""Different ones: each may take half a MiB of memory for as long as the policy serves."""
ExpressionCache = dict[tuple[object, ...], CompiledExpression]
"""Expressions that compiled, by all that decides what comes of them: of many policies few are unlike any other."""


@dataclass(slots=True)
class ExpressionCompiler:
    """What was compiled so far, and what is wrong."""

    data: Sequence[str]
    cache: ExpressionCache | None = None
    """What other policies have compiled; None: nothing is kept."""
    faults: list[Fault] = field(default_factory=list)
    made: list[CompiledExpression] = field(default_factory=list)
    """All that was compiled, to be let go of in pieces where nothing comes of it."""
    variables: dict[str, CompiledExpression] = field(default_factory=dict)
    _parts: dict[str, int] = field(default_factory=dict)
    _patterns: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # variables that do not compile: whoever uses them is not to blame
    _environments: dict[str, Environment] = field(default_factory=dict)

    def declare(self, variables: Sequence[Variable]) -> Steps[None]:
        """Compile the variables, in whatever order they stand."""
        declared = {variable.name: (at, variable.expression) for at, variable in enumerate(variables)}
        uses = {name: _named_in(text) & declared.keys() for name, (_, text) in declared.items()}
        waiting = dict(declared)
        while waiting:
            ready = [name for name in waiting if not uses[name] & waiting.keys()]
            if not ready:
                self._circles({name: uses[name] & waiting.keys() for name in waiting}, declared)
                return
            for name in ready:
                at, text = waiting.pop(name)
                made = yield from self.compiled(("spec", "variables", at, "expression"), text, PROTECTION, VALUE)
                if made is None:
                    self.broken.add(name)
                else:
                    self.variables[name] = made
                    self._parts[name] = self._parts_of(made.expression.checked)
            self._environments.clear()

    def compiled(self, path: FieldPath, text: str, scope: Scope, want: Want) -> Steps[CompiledExpression | None]:
        """Check an expression and lower it; what is wrong with it is noted down."""
        return about(path, self._compiled(path, text, scope, want))

    def _compiled(self, path: FieldPath, text: str, scope: Scope, want: Want) -> Steps[CompiledExpression | None]:
        yield
        if _named_in(text) & self.broken:
            return None  # what is wrong is said where the variable stands
        if beyond := list(self._beyond(text, scope)):
            self.faults += [in_expression(path, found, text) for found in beyond]
            return None
        key = self._key(text, scope, want)
        if self.cache is not None and key in self.cache:
            return self.cache[key]
        environment = self._environment(scope)
        yield
        try:
            expression = yield from check_steps(text, environment, want)
        except ExpressionError as error:
            self.faults += [in_expression(path, found, text) for found in error.diagnostics]
            return None
        yield
        if (parts := self._parts_of(expression.checked)) > PARTS_MAX:
            fault = f"has {parts:,} parts with its variables written out, {PARTS_MAX:,} are allowed"
            self.faults.append(in_field(path, fault, "use variables less often"))
            return None
        made = CompiledExpression(expression, self._used(expression.checked.names.values()))
        self.made.append(made)
        patterns = _patterns(made)
        if (count := len(patterns)) > PATTERNS_MAX:
            fault = f"has {count} regular expressions with those of its variables, {PATTERNS_MAX} are allowed"
            self.faults.append(in_field(path, fault, "join them: a|b, or split it into several rules"))
            return None
        self._patterns |= patterns
        if (count := len(self._patterns)) > PATTERNS_OF_POLICY_MAX:
            fault = f"has the policy's regular expression number {count}, {PATTERNS_OF_POLICY_MAX} are allowed"
            self.faults.append(in_field(path, fault, "join them: a|b, or split the policy"))
            return None
        yield
        if (steps := made.worst_case) > BUDGET:
            fault = f"may take {steps:,} loop steps on {NODES:,} nodes with {PODS} pods each, {BUDGET:,} are allowed"
            self.faults.append(in_field(path, fault, "loop over the pods of a node once, not inside of another loop"))
            return None
        _ = made.paths
        yield
        made.analyse()
        yield
        try:
            yield from made.evaluation_steps()
        except RuntimeError:
            fault = "is too deep or too long for the engine with its variables written out"
            self.faults.append(in_field(path, fault, "use variables less often"))
            return None
        if (slow := _of_engine(made)) is not None:
            self.faults.append(in_field(path, *slow))
            return None
        yield
        if self.cache is not None:
            self.cache[key] = made
        return made

    def _key(self, text: str, scope: Scope, want: Want) -> tuple[object, ...]:
        """What is made of it holds the variables that it uses: their identities last as long as it is kept."""
        used = sorted(_named_in(text) & self.variables.keys())
        return text, scope.what, want.what, tuple(self.data), tuple((name, id(self.variables[name])) for name in used)

    def _environment(self, scope: Scope) -> Environment:
        if scope.what not in self._environments:
            roots = set(scope.roots)
            types = {name: one.expression.type for name, one in self.variables.items() if one.roots <= roots}
            self._environments[scope.what] = Environment(scope, types, self.data)
        return self._environments[scope.what]

    def _beyond(self, text: str, scope: Scope) -> Iterator[Diagnostic]:
        """Variables that read what is not there where they are used."""
        for name, start, _ in references(text):
            variable = self.variables.get(name)
            reads = sorted(variable.roots - set(scope.roots)) if variable else []
            if reads:
                line, column = place(text, start)
                those = " and ".join(f"`{root}`" for root in reads)
                fault = f"the variable `{name}` reads {those}, which {scope.what} cannot see"
                yield Diagnostic(line, column, fault, f"there are {', '.join(scope.roots)}")

    def _used(self, named: Iterable[str]) -> dict[str, CompiledExpression]:
        """The variables among what an expression names, and those that they use."""
        found: dict[str, CompiledExpression] = {}
        for name in sorted({full.removeprefix(VARIABLES) for full in named if full.startswith(VARIABLES)}):
            found |= {**self.variables[name].variables, name: self.variables[name]}
        return found

    def _parts_of(self, checked: Checked) -> int:
        """How large the code becomes, into which the variables are written at each place that names them."""
        parts = list(walk(checked.root))
        named = (checked.names.get(part.id, "").removeprefix(VARIABLES) for part in parts if isinstance(part, Ident))
        return len(parts) + sum(self._parts.get(name, 0) for name in named)

    def _circles(self, uses: Mapping[str, set[str]], declared: Mapping[str, tuple[int, str]]) -> None:
        """Name every circle once; whoever uses one of them is not to blame."""
        told = set[str]()
        for name in uses:
            circle = _circle(name, uses)
            if told.isdisjoint(circle):
                for each in dict.fromkeys(circle):
                    path = ("spec", "variables", declared[each][0], "expression")
                    way = " -> ".join(_turned(circle, each))
                    self.faults.append(in_field(path, f"uses itself: {way}", "let one of them not use the others"))
            told.update(circle)
        self.broken.update(uses)


def _of_engine(made: CompiledExpression) -> tuple[str, str] | None:
    """What is wrong with an expression that is not lowered."""
    if made.evaluation == "Lowered":
        return None
    if (needed := made.engine_time) > ENGINE_BUDGET:
        fault = f"runs on the engine, where it may take {needed:,.0f} us for a node; {ENGINE_BUDGET:,.0f} are allowed"
        return fault, "write patterns out, or read less of the node: what is not lowered is slow"
    if (cost := made.engine_cost) > ENGINE_COST:
        said = f"{cost:,.0f}" if cost < inf else "any amount"
        fault = f"runs on the engine, where one evaluation may cost {said} of work; {ENGINE_COST:,} units are allowed"
        return fault, "loop over less, and write numbers and patterns out: the engine does not stop by itself"
    return None


def _patterns(made: CompiledExpression) -> set[str]:
    """The constant patterns of an expression and of its variables, which are all compiled."""
    trees = [made.expression.checked, *(one.expression.checked for one in made.variables.values())]
    return {pattern for checked in trees for pattern in _patterns_in(checked)}


def _patterns_in(checked: Checked) -> Iterator[str]:
    for node in walk(checked.root):
        match node:
            case Call(args=(_, Const(value=str(pattern)), *_)) if not PATTERN_METHODS.keys().isdisjoint(
                checked.overloads.get(node.id, ())
            ):
                yield pattern


def _named_in(text: str) -> set[str]:
    return {reference.name for reference in references(text)}


def _circle(start: str, uses: Mapping[str, set[str]]) -> list[str]:
    """Variables that use each other in turn, found on a way from this one."""
    way = [start]
    while True:
        following = min(uses[way[-1]])
        if following in way:
            return way[way.index(following) :]
        way.append(following)


def _turned(circle: list[str], first: str) -> list[str]:
    at = circle.index(first)
    return [*circle[at:], *circle[:at], first]
