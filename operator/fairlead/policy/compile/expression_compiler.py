"""Compiler of one policy's expressions: variables first, each after those that it uses, then the rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from fairlead.cooperative import Steps, at_path
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.policy_errors import Fault, in_expression, in_field

PATTERNS_OF_POLICY_MAX: Final = 128
"""Distinct patterns; each may take half a MiB of memory for as long as the policy serves."""
ExpressionCache = dict[tuple[object, ...], CompiledExpression]
"""Compiled expressions by everything that the result depends on; many policies have expressions in common."""


@dataclass(slots=True)
class ExpressionCompiler:
    """Compiler of the expressions of one policy, with the results and faults so far."""

    data: Sequence[str]
    cache: ExpressionCache | None = None
    """Expressions of other policies; None: nothing is cached."""
    faults: list[Fault] = field(default_factory=list)
    expressions: list[CompiledExpression] = field(default_factory=list)
    """Everything that was compiled, so that it can be freed in pieces if the policy does not compile."""
    variables: dict[str, CompiledExpression] = field(default_factory=dict)
    _parts: dict[str, int] = field(default_factory=dict)
    _patterns: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # variables that do not compile; rules that use them get no faults
    _environments: dict[str, Environment] = field(default_factory=dict)

    def declare(self, variables: Sequence[Variable]) -> Steps[None]:
        """Compile the variables, in the order of their dependencies."""
        declared = {variable.name: (at, variable.expression) for at, variable in enumerate(variables)}
        uses = {name: _named_in(text) & declared.keys() for name, (_, text) in declared.items()}
        waiting = dict(declared)
        while waiting:
            ready = [name for name in waiting if not uses[name] & waiting.keys()]
            if not ready:
                self._report_cycles({name: uses[name] & waiting.keys() for name in waiting}, declared)
                return
            for name in ready:
                at, text = waiting.pop(name)
                made = yield from self.compile(("spec", "variables", at, "expression"), text, PROTECTION, VALUE)
                if made is None:
                    self.broken.add(name)
                else:
                    self.variables[name] = made
                    self._parts[name] = self._parts_of(made.expression.checked)
            self._environments.clear()

    def compile(self, path: FieldPath, text: str, scope: Scope, want: Want) -> Steps[CompiledExpression | None]:
        """Check an expression and lower it; if it has faults, record them and return None."""
        return at_path(path, self._compiled(path, text, scope, want))

    def _compiled(self, path: FieldPath, text: str, scope: Scope, want: Want) -> Steps[CompiledExpression | None]:
        yield
        if _named_in(text) & self.broken:
            return None  # the fault is reported at the variable
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
        # What is lowered needs nothing of the engine, and the rest is compiled in an environment that all share.
        used = self._used(expression.checked.names.values())
        made = CompiledExpression(replace(expression, compiled=None), used)
        self.expressions.append(made)
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
            self.faults.append(in_field(path, fault, "loop over the pods of a node once, not inside another loop"))
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
        """Return the key in the cache; ids of variables stay valid, because the cached expression holds them."""
        used = sorted(_named_in(text) & self.variables.keys())
        return text, scope.what, want.what, tuple(self.data), tuple((name, id(self.variables[name])) for name in used)

    def _environment(self, scope: Scope) -> Environment:
        if scope.what not in self._environments:
            roots = set(scope.roots)
            types = {name: one.expression.type for name, one in self.variables.items() if one.roots <= roots}
            self._environments[scope.what] = Environment(scope, types, self.data)
        return self._environments[scope.what]

    def _beyond(self, text: str, scope: Scope) -> Iterator[Diagnostic]:
        """Yield the variables that read what this scope does not have."""
        for name, start, _ in references(text):
            variable = self.variables.get(name)
            reads = sorted(variable.roots - set(scope.roots)) if variable else []
            if reads:
                line, column = place(text, start)
                those = " and ".join(f"`{root}`" for root in reads)
                fault = f"the variable `{name}` reads {those}, which {scope.what} cannot see"
                yield Diagnostic(line, column, fault, f"there are {', '.join(scope.roots)}")

    def _used(self, named: Iterable[str]) -> dict[str, CompiledExpression]:
        """Return the variables that an expression names, and those that they use."""
        found: dict[str, CompiledExpression] = {}
        for name in sorted({full.removeprefix(VARIABLES) for full in named if full.startswith(VARIABLES)}):
            found |= {**self.variables[name].variables, name: self.variables[name]}
        return found

    def _parts_of(self, checked: Checked) -> int:
        """Return the size of the code, into which variables are written wherever they are named."""
        parts = list(walk(checked.root))
        named = (checked.names.get(part.id, "").removeprefix(VARIABLES) for part in parts if isinstance(part, Ident))
        return len(parts) + sum(self._parts.get(name, 0) for name in named)

    def _report_cycles(self, uses: Mapping[str, set[str]], declared: Mapping[str, tuple[int, str]]) -> None:
        """Add the faults for variables that use each other in a cycle; others that use these get no faults."""
        reported = set[str]()
        for name in uses:
            cycle = _cycle(name, uses)
            if reported.isdisjoint(cycle):
                for each in dict.fromkeys(cycle):
                    path = ("spec", "variables", declared[each][0], "expression")
                    way = " -> ".join(_rotated(cycle, each))
                    self.faults.append(in_field(path, f"uses itself: {way}", "let one of them not use the others"))
            reported.update(cycle)
        self.broken.update(uses)


def _of_engine(expression: CompiledExpression) -> tuple[str, str] | None:
    """Return why an expression may not run on the engine, with a hint; None if it may, or is lowered."""
    if expression.evaluation == "ByteCode":
        return None
    if (needed := expression.engine_time) > ENGINE_BUDGET:
        fault = f"runs on the engine, where it may take {needed:,.0f} us for a node; {ENGINE_BUDGET:,.0f} are allowed"
        return fault, "write patterns out, or read less of the node: what is not lowered is slow"
    if (cost := expression.engine_cost) > ENGINE_COST:
        amount = f"{cost:,.0f} units" if cost < inf else "any number of units"
        fault = f"runs on the engine, where one evaluation may cost {amount} of work; {ENGINE_COST:,} are allowed"
        return fault, "loop over less, and write numbers and patterns out: the engine does not stop by itself"
    return None


def _patterns(expression: CompiledExpression) -> set[str]:
    """Return the constant patterns of an expression and of its variables; all are compiled in advance."""
    trees = [expression.expression.checked, *(one.expression.checked for one in expression.variables.values())]
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


def _cycle(start: str, uses: Mapping[str, set[str]]) -> list[str]:
    """Return a cycle of variables that can be reached from this one."""
    way = [start]
    while True:
        following = min(uses[way[-1]])
        if following in way:
            return way[way.index(following) :]
        way.append(following)


def _rotated(cycle: list[str], first: str) -> list[str]:
    at = cycle.index(first)
    return [*cycle[at:], *cycle[:at], first]
