"""Parts of an expression that raise whatever there is: `1 / 0`, an element that there is not, `'%d'` for a text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from cel_expr_python import cel

from fairlead.cel.analysis.cost import ENGINE_COST
from fairlead.cel.analysis.estimate import Estimate
from fairlead.cel.analysis.node_facts import VARIABLES, Names
from fairlead.cel.engine import evaluate
from fairlead.cel.engine.environment import RULE, environment
from fairlead.cel.lowering.program import Program, translated
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, children, walk
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.syntax.unparse import text
from fairlead.cel.values.errors import Abort, CelError, NotLoweredError
from fairlead.policy.compile.expression import ON_ENGINE, CompiledExpression
from fairlead.policy.views.faults import RAISED

_SAMPLES: Final[Mapping[str, str]] = {"string": "'x'", "int": "1", "uint": "1u", "double": "1.0", "bool": "true"}
_LOOKED_AT: Final = 1_000
_CONSTANT_MAX: Final = 200
"""Nodes of a constant that is evaluated; of a larger one the parts are."""
_EVALUATIONS: Final = 100
"""Of one expression: each may take as much as the budget of an evaluation allows."""


def always_raising(compiled: CompiledExpression) -> Iterator[tuple[Node, str] | None]:
    """The smallest parts that always raise, and what they raise; nothing of the policy's variables. None: a pause."""
    checked = compiled.expression.checked
    variables = {name: one.expression.checked for name, one in compiled.variables.items()}
    try:
        names = compiled.names
    except NotLoweredError:
        return
    macros = [part for part in walk(checked.root) if isinstance(part, Comprehension)]
    bound = {name for one in macros for name in (one.variable, one.variable2, one.accumulator)}
    yield from _Finder(checked, variables, names, frozenset(bound)).below(checked.root)


@dataclass(frozen=True, slots=True)
class _Finder:
    checked: Checked
    variables: Mapping[str, Checked]
    names: Mapping[int, Names]
    bound: Names
    """What macros call something: it may be a type, too."""
    looked_at: list[int] = field(default_factory=lambda: [0])
    """Nodes, since the last pause."""
    left: list[int] = field(default_factory=lambda: [_EVALUATIONS])
    """Constants that may still be evaluated."""

    def below(self, node: Node) -> Iterator[tuple[Node, str] | None]:
        if isinstance(node, Const | Ident):
            return  # what a variable raises is said where it stands
        size = sum(1 for _ in walk(node))
        self.looked_at[0] += size
        if self.looked_at[0] > _LOOKED_AT:
            self.looked_at[0] = 0
            yield None
        said = None
        if not self._is_constant(node):
            said = self._of_call(node)
        elif size <= _CONSTANT_MAX and self.left[0] > 0 and any(isinstance(part, Call) for part in walk(node)):
            self.left[0] -= 1
            yield None
            said = self._raised(node)
            yield None
            if said is None:
                return
        is_below = False
        for child in children(node):
            for found in self.below(child):
                is_below = is_below or found is not None
                yield found
        if said is not None and not is_below:
            yield node, said

    def _is_constant(self, node: Node) -> bool:
        """Whether it is made of nothing but literals, and of types, which are named, too."""
        named = [part for part in walk(node) if isinstance(part, Ident)]
        if any(self.checked.names.get(part.id, "").startswith(VARIABLES) for part in named):
            return False
        types = {part.name for part in named if self.checked.type_of(part).name == "type"} - self.bound
        return self.names.get(node.id, frozenset()) <= types

    def _raised(self, node: Node) -> str | None:
        """What a constant part raises."""
        try:
            Program(replace(self.checked, root=node), self.variables).plain(None)(None, 0)
        except NotLoweredError:
            return _on_engine(text(node))
        except RAISED as error:
            return error.message if isinstance(error, Abort) else translated(error).message
        return None

    def _of_call(self, node: Node) -> str | None:
        """What a call raises because of its constant arguments alone."""
        match node:
            case Call(function="_/_" | "_%_" as operator, args=(_, Const(value=int(divisor)))) if divisor == 0:
                return "divide by zero" if operator == "_/_" else "modulus by zero"
            case Call(function="format", args=(Const() as pattern, ListExpr(elements=elements))):
                samples = [_SAMPLES.get(self.checked.type_of(element).name) for element in elements]
                if None not in samples:
                    return _on_engine(f"{text(pattern)}.format([{', '.join(filter(None, samples))}])")
        return None


@lru_cache(maxsize=256)
def _on_engine(written: str) -> str | None:
    """What the engine says of a constant expression."""
    try:
        compiled = _environment().compile(written)
        if Estimate(decode(compiled.serialize()), {}, ON_ENGINE).cost > ENGINE_COST:
            return None
        evaluate.evaluate(compiled, {})
    except (CelError, Abort) as error:
        return error.message.partition(": ")[2] or error.message
    except (RuntimeError, TypeError):
        return None  # not an expression by itself, or an error without words
    return None


@cache
def _environment() -> cel.Env:
    return environment(RULE, {})
