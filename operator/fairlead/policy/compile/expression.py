"""A checked expression that can be evaluated: lowered if possible, else on the CEL engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from cel_expr_python import cel

from fairlead.api.status import Evaluation
from fairlead.cel.analysis.cost import NODES, engine_time, worst_case
from fairlead.cel.analysis.estimate import Estimate
from fairlead.cel.analysis.expiry import Note
from fairlead.cel.analysis.expression_reads import OF_PODS, Path, reads
from fairlead.cel.analysis.sizes import SizeLimits
from fairlead.cel.analysis.time_dependence import unit_of_fields
from fairlead.cel.check import MAX_BYTES, Expression
from fairlead.cel.engine import evaluate
from fairlead.cel.engine.environment import PROTECTION, environment
from fairlead.cel.engine.protobuf import ELEMENTS_MAX, TEXT_MAX, ReadBudget
from fairlead.cel.lowering.program import OF_POD, Program, Traced
from fairlead.cel.syntax.ast import Const, Node, Select, walk
from fairlead.cel.syntax.source_refs import replace_references
from fairlead.cel.values.errors import CelError, Kind, NotLoweredError
from fairlead.cooperative import Steps
from fairlead.strategies.reads import EVERY, PodsRead, Reads

One = Callable[[Any, int], Any]
ON_ENGINE: Final = SizeLimits(text=TEXT_MAX, annotations=TEXT_MAX, elements=ELEMENTS_MAX, is_engine=True)
ENGINE_TEXT_MAX: Final = 2 * MAX_BYTES
_AMOUNTS: Final = ("request", "free", "requested", "allocatable", "data")


@dataclass(frozen=True)
class CompiledExpression:
    """An expression of a policy with the variables that it may use."""

    expression: Expression
    variables: Mapping[str, "CompiledExpression"] = field(default_factory=dict)

    @cached_property
    def paths(self) -> frozenset[Path]:
        """Return what the expression reads."""
        return reads(self.expression.checked, self._trees)

    @cached_property
    def worst_case(self) -> int:
        """Return the loop steps over all nodes of the largest cluster."""
        return worst_case(self.expression.checked, self._trees)

    def analyse(self) -> None:
        """Do the first half of the work of `evaluation`, so that neither half takes long."""
        self._program.analyse()

    @cached_property
    def written(self) -> frozenset[object]:
        """Return the keys and constants in the text of the expression and of its variables."""
        found: set[object] = set()
        for tree in (self.expression.checked, *self._trees.values()):
            for node in walk(tree.root):
                if isinstance(node, Const):
                    found.add(node.value)
                elif isinstance(node, Select):
                    found.add(node.field)
        return frozenset(found)

    @property
    def engine_time(self) -> float:
        """Return the microseconds that a node takes on the engine."""
        return engine_time(self.paths, self.worst_case // NODES)

    @cached_property
    def engine_cost(self) -> float:
        """Return the most that one evaluation on the engine may cost, in units of the meter."""
        return Estimate(self.expression.checked, self._trees, ON_ENGINE).cost

    @cached_property
    def evaluation(self) -> Evaluation:
        """Return where the expression runs. Raises RuntimeError if it can run nowhere."""
        try:
            self._program.check()
        except NotLoweredError:
            _ = self._for_engine
            return "Engine"
        return "ByteCode"

    @property
    def has_budget(self) -> bool:
        """Report whether an evaluation may be ended because it takes too much."""
        return self.evaluation == "Engine" or self._program.is_metered

    def evaluation_steps(self) -> Steps[None]:
        """Compute `evaluation` in pieces."""
        if "evaluation" not in vars(self):
            try:
                yield from self._program.check_steps()
            except NotLoweredError:
                yield
                _ = self._for_engine
                yield
                vars(self)["evaluation"] = "Engine"
            else:
                vars(self)["evaluation"] = "ByteCode"

    @cached_property
    def roots(self) -> frozenset[str]:
        """Return the variables of the environment that the expression depends on."""
        return frozenset(path[0] for path in self.paths)

    def for_pod(self, pod: Any) -> One:
        """Compute what depends on the pod alone, and return a function of a node and the time for the rest."""
        if self.evaluation == "ByteCode":
            return self._program.for_pod(pod)
        if self.roots <= {*OF_POD, "now"}:
            once = lru_cache(maxsize=1)(lambda now: self._on_engine(pod, None, now))
            return lambda _, now: once(now if "now" in self.roots else 0)
        return lambda node, now: self._on_engine(pod, node, now)

    @cached_property
    def has_known_expiry(self) -> bool:
        """Report whether it is known how long a result holds if nothing but the time changes."""
        if "now" not in self.roots:
            return True
        return (self._unit if self.evaluation == "Engine" else self._program.watched) is not None

    def for_pod_with_expiry(self, pod: Any, note: Note) -> One:
        """Do what `for_pod` does, and note after how many nanoseconds a result may change.

        Only for expressions with `has_known_expiry`.
        """
        if self.evaluation == "ByteCode":
            return self._program.noting(pod, note)
        inner, unit = self.for_pod(pod), self._unit

        def one(node: Any, now: int) -> Any:
            if unit is not None:
                note(unit - now % unit)
            return inner(node, now)

        return one

    def traced(self, pod: Any) -> Traced:
        """Return what `for_pod` returns, but with the value of every part."""
        return self._program.traced(pod)

    def part(self, node: Node) -> "CompiledExpression":
        """Return a part of the expression by itself; what a macro around it binds is missing."""
        checked = replace(self.expression.checked, root=node)
        return CompiledExpression(replace(self.expression, checked=checked), self.variables)

    @cached_property
    def derived(self) -> dict[str, "CompiledExpression"]:
        """Return a cache of expressions that are made from this one, by purpose; explanations use it."""
        return {}

    @cached_property
    def _trees(self) -> Mapping[str, Any]:
        return {name: variable.expression.checked for name, variable in self.variables.items()}

    @cached_property
    def _wanted(self) -> Mapping[str, Any]:
        return evaluate.needed_fields(self.paths)

    @cached_property
    def _program(self) -> Program:
        return Program(self.expression.checked, self._trees)

    @cached_property
    def _unit(self) -> int | None:
        return unit_of_fields(self.expression.checked, self._trees)

    @cached_property
    def _for_engine(self) -> cel.Expression:
        """Compile the expression with its variables bound in it, so that the engine computes only those it needs."""
        if not self.variables:
            return self.expression.compiled or environment(PROTECTION, {}).compile(self.expression.text)
        text = f"({replace_references(self.expression.text, _bound_name)}\n)"
        for name in reversed(_in_order(self.variables)):
            held = replace_references(self.variables[name].expression.text, _bound_name)
            text = f"cel.bind({_bound_name(name)}, ({held}\n), {text})"
        if len(text) > ENGINE_TEXT_MAX:
            raise RuntimeError(f"with its variables written out it has {len(text)} characters")
        return environment(PROTECTION, {}).compile(text)

    def _on_engine(self, pod: Any, node: Any, now: int) -> Any:
        facts: dict[str, Any] = {name: getattr(pod, name) for name in self.roots if name in OF_POD}
        facts |= {name: getattr(node, name) for name in self.roots if name not in (*OF_POD, "now")}
        given = evaluate.engine_inputs(
            {name: value for name, value in facts.items() if value is not None}, self._wanted, ReadBudget()
        )
        if "now" in self.roots:
            given["now"] = evaluate.plain_time(now)
        try:
            return evaluate.evaluate(self._for_engine, given).value()
        except CelError as error:
            if error.kind is Kind.NO_SUCH_KEY and "data" in self.roots:
                self._raise_missing(node.data)
            raise

    def _raise_missing(self, data: Mapping[str, float]) -> None:
        """Raise the error that says why an entry of data is missing; the engine only says that a key is."""
        for path in sorted(self.paths):
            if path[0] == "data" and len(path) > 1:
                _ = data[path[1]]


def _bound_name(variable: str) -> str:
    return f"variables_{variable}_of_the_policy"


def _in_order(variables: Mapping[str, CompiledExpression]) -> list[str]:
    """Return the variables, each once and after those that it uses."""
    ordered: dict[str, None] = {}

    def add(names: Mapping[str, CompiledExpression]) -> None:
        for name, variable in names.items():
            if name not in ordered:
                add(variable.variables)
                ordered[name] = None

    add(variables)
    return list(ordered)


def as_reads(paths: frozenset[Path]) -> Reads:
    """Return paths as `Reads`, which strategies use."""
    amounts: dict[str, Any] = {name: frozenset(_amount(path) for path in paths if path[0] == name) for name in _AMOUNTS}
    return Reads(
        pod=_below(paths, "pod"),
        namespace=_below(paths, "namespaceObject"),
        node=_below(paths, "node"),
        pods=frozenset({PodsRead()}) if any(path[0] in OF_PODS for path in paths) else frozenset(),
        now=("now",) in paths,
        **amounts,
    )


def _amount(path: Path) -> str:
    return path[1] if len(path) > 1 else EVERY


def _below(paths: frozenset[Path], root: str) -> frozenset[Path]:
    return frozenset(path[1:] for path in paths if path[0] == root)


def finite(value: Any) -> float:
    """Return a score as a float. Raises CelError if it is not finite."""
    number = float(value)
    if number - number != 0.0:
        raise CelError(Kind.ARGUMENT, f"the score is {number}")
    return number
