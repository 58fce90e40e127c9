"""A case of the specification as a rule of Fairlead: checked, evaluated on the engine, and by lowered code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from cel_expr_python import cel
from google.protobuf import duration_pb2

from conformance.cases import SpecCase
from conformance.values import SECOND, NotOursError, type_of, value_of
from differential.outcomes import Outcome, describe, error_outcome, evaluated
from fairlead.cel.check import VALUE, Environment, Expression, ExpressionError, check
from fairlead.cel.engine.environment import Scope, engine_type, libraries
from fairlead.cel.engine.evaluate import plain
from fairlead.cel.engine.own_functions import own_functions
from fairlead.cel.engine.protobuf import pool
from fairlead.cel.lowering.program import One, Program, translate_error
from fairlead.cel.lowering.pyast import CAUGHT
from fairlead.cel.syntax.ast import Checked, Type
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.values.errors import Abort, NotLoweredError
from fairlead.cel.values.value_types import Duration
from oracle import literal

REFUSED, ENGINE, BOTH, LOWERED = "refused", "engine", "both", "lowered"
_NOTHING = SimpleNamespace()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case."""

    difference: str = ""
    """Empty if everything is as the specification says; REFUSED if it is no rule; ENGINE if only the engine differs,
    BOTH if lowered code does what the engine does, LOWERED if it does something else than either."""
    why: str = ""
    is_lowered: bool = False


def run(case: SpecCase) -> Result:
    """Check, lower and evaluate a case, and compare with what the specification wants."""
    message = case.message
    try:
        declared = {one.name: _type(one) for one in message.type_env}
        bindings = {name: _value(bound) for name, bound in message.bindings.items()}
        wanted = None if message.check_only else _wanted(message)
        made = _spec_environment(tuple(sorted(declared.items())), message.container)
        type_ = type_of(message.typed_result.deduced_type) if message.HasField("typed_result") else None
        expression, wanted = _checked(message.expr, made, wanted)
    except (NotOursError, ExpressionError) as error:
        return Result(REFUSED, str(error))
    if type_ is not None and type_ not in (expression.type, *expression.type.params):
        return Result(ENGINE, f"wanted the type {type_}, the checker finds {expression.type}")
    return Result() if wanted is None else _compared(expression, bindings, wanted)


def _compared(expression: Expression, bindings: Mapping[str, object], wanted: Outcome) -> Result:
    facts = {name: _for_engine(value) for name, value in bindings.items()}
    engine = evaluated(expression.compiled, _spec_environment((), "").engine.Activation(facts))
    program = _program(expression.checked, bindings)
    try:
        program.check()
    except NotLoweredError:
        if _agree(wanted, engine):
            return Result()
        return Result(ENGINE, f"wanted {wanted}, the engine {engine}")
    for make in (program.for_pod, program.plain):
        lowered = _lowered(make)
        why = f"wanted {wanted}, the engine {engine}, lowered {lowered}"
        if lowered != engine and not _agree(wanted, lowered):
            return Result(LOWERED, why, is_lowered=True)
        if not _agree(wanted, engine):
            return Result(BOTH if lowered == engine else ENGINE, why, is_lowered=True)
    return Result(is_lowered=True)


def _agree(wanted: Outcome, found: Outcome) -> bool:
    """Return whether an outcome is as wanted; the specification leaves the words of errors to each engine."""
    return bool(found.error) if wanted.error else wanted == found


def _lowered(make: Callable[[object], One]) -> Outcome:
    try:
        return Outcome(describe(make(_NOTHING)(_NOTHING, 0)))
    except (*CAUGHT, Abort) as error:
        return error_outcome(error if isinstance(error, Abort) else translate_error(error))


def _program(checked: Checked, bindings: Mapping[str, object]) -> Program:
    """Return an expression with what is bound as variables of a policy, each of which is a literal."""
    names = {at: f"variables.{name}" if name in bindings else name for at, name in checked.names.items()}
    return Program(replace(checked, names=names), {name: _literal(value) for name, value in bindings.items()})


def _literal(value: object) -> Checked:
    return decode(_spec_environment((), "").engine.compile(literal(value)).serialize())


def _wanted(message: Any) -> Outcome:
    match message.WhichOneof("result_matcher"):
        case None:
            return Outcome(describe(value=True))
        case "value":
            return Outcome(describe(value_of(message.value)))
        case "typed_result":
            return Outcome(describe(value_of(message.typed_result.result)))
        case "eval_error" | "any_eval_errors":
            return Outcome("", "any error")
    raise NotOursError("an unknown value")


class _SpecEnvironment(Environment):
    """The names of a case in the place of a rule's; functions and messages are a rule's."""

    def __post_init__(self) -> None:
        named = {name: engine_type(type_) for name, type_ in self.variables.items()}
        made = cel.NewEnv(
            pool(),
            config=libraries(),
            variables=named,
            functions=own_functions(),
            container=self.scope.what or None,
        )
        object.__setattr__(self, "engine", made)


@cache
def _spec_environment(types: tuple[tuple[str, Type], ...], container: str) -> Environment:
    return _SpecEnvironment(Scope(container, ()), dict(types))


def _checked(text: str, made: Environment, wanted: Outcome | None) -> tuple[Expression, Outcome | None]:
    """Check as a rule is checked; what no rule can result in, an optional or a type, as the element of a list."""
    try:
        return check(text, made, VALUE), wanted
    except ExpressionError as error:
        if not error.diagnostics[0].message.startswith(f"expected {VALUE.what}"):
            raise
    inside = replace(wanted, value=f"[{wanted.value}]") if wanted and not wanted.error else wanted
    return check(f"[{text}]", made, VALUE), inside


def _for_engine(value: object) -> object:
    if isinstance(value, Duration):
        return duration_pb2.Duration(seconds=value // SECOND, nanos=value % SECOND)
    return plain(value)


def _type(declared: Any) -> Type:
    if declared.WhichOneof("decl_kind") != "ident":
        raise NotOursError("a function that the case declares")
    return type_of(declared.ident.type)


def _value(bound: Any) -> object:
    if bound.WhichOneof("kind") != "value":
        raise NotOursError("a name that is bound to an error or to nothing")
    return value_of(bound.value)
