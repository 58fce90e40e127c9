"""Checking of expressions: from text to a typed tree, or to diagnostics."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cel_expr_python import cel

from fairlead.cel.analysis.static_types import is_known
from fairlead.cel.engine.environment import Scope, environment
from fairlead.cel.engine.flatten_types import flatten_types_steps
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.hints.diagnosis import diagnostics_steps, faults
from fairlead.cel.hints.engine_messages import show_type
from fairlead.cel.hints.likely_mistakes import NO_RESOURCE, likely_mistakes_steps
from fairlead.cel.hints.rewrites import substitute, write
from fairlead.cel.hints.type_hints import of_result
from fairlead.cel.hints.unknown_names import KnownNames, did_you_mean
from fairlead.cel.hints.verification import Remaining, Verifier
from fairlead.cel.syntax.ast import OPTIONAL, Call, Checked, Const, Ident, Node, Select, StructExpr, Type, walk
from fairlead.cel.syntax.ast_decode import decode_parsed_steps, decode_steps
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.unparse import operand_text
from fairlead.cel.values.schema import PACKAGE
from fairlead.cooperative import Steps, finish

MAX_BYTES: Final = 4096
COPIES_MAX: Final = 8
"""The most uses of optMap and optFlatMap, which the engine expands: each doubles the expression it is called on."""
SERIALIZED_MAX: Final = 1 << 17
PARTS_MAX: Final = 1_000
"""The most nodes of an expression: a pass over all of them takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Want:
    """Result that an expression must have."""

    what: str
    types: tuple[str, ...]
    hint: str


BOOL: Final = Want("a bool", ("bool",), "compare it with something")
NUMBER: Final = Want("a number", ("int", "uint", "double"), "use `condition ? 100.0 : 0.0`, or double(...)")
INT: Final = Want("an int", ("int",), "convert it with int(...)")
STRING: Final = Want("a string", ("string",), "convert it with string(...)")
VALUE: Final = Want("a value", (), "end it with orValue(...)")


class ExpressionError(Exception):
    """Diagnostics of a rejected expression."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class Environment:
    """Names that the expressions of one scope of a policy may use."""

    scope: Scope
    variables: Mapping[str, Type] = field(default_factory=dict)
    data: Collection[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", environment(self.scope, self.variables))

    engine: cel.Env = field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Expression:
    """Expression that the engine accepts."""

    text: str
    type: Type
    checked: Checked
    compiled: cel.Expression | None
    """For the engine; None to compile it again if it has to run there. It keeps its environment, which is large."""


def check(text: str, environment: Environment, want: Want) -> Expression:
    """Parse and check an expression. Raises ExpressionError with all diagnostics."""
    return finish(check_steps(text, environment, want))


def check_steps(text: str, environment: Environment, want: Want) -> Steps[Expression]:
    """Do what `check` does, with pauses."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        fault = f"the expression has {size} bytes, {MAX_BYTES} are allowed"
        raise ExpressionError([Diagnostic(1, 1, fault, "split it with variables")])
    if not text.strip():
        raise ExpressionError([Diagnostic(1, 1, "the expression is empty", f"write one that evaluates to {want.what}")])
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ExpressionError([Diagnostic(1, 1, "the expression contains a NUL or a surrogate", "remove it")])
    if text.count("optMap") + text.count("optFlatMap") > COPIES_MAX:
        fault = f"the expression uses optMap and optFlatMap more than {COPIES_MAX} times"
        raise ExpressionError([Diagnostic(1, 1, fault, "move parts of it into variables")])
    rejection, compiled = "", None
    try:
        compiled = environment.engine.compile(text)
    except RuntimeError as error:
        rejection = str(error)
    yield
    if compiled is None:
        names = KnownNames(environment.scope, tuple(environment.variables), environment.data)
        tree = yield from _parsed(text, environment)
        yield
        found = yield from diagnostics_steps(rejection, text, tree, names, lambda other: _remaining(other, environment))
        raise ExpressionError(found)
    serialized = compiled.serialize()
    if len(serialized) > SERIALIZED_MAX:
        raise ExpressionError([_too_large(f"far more than {PARTS_MAX:,}")])
    checked = yield from decode_steps(serialized)
    yield
    if (parts := sum(1 for _ in walk(checked.root))) > PARTS_MAX:
        raise ExpressionError([_too_large(f"{parts:,}")])
    checked = yield from flatten_types_steps(text, checked, environment.engine)
    type_ = checked.type_of(checked.root)
    rejected = {*_rejected(text, checked, environment)}
    yield
    rejected |= {*(yield from _of_dyn(text, checked, environment))}
    found = sorted({*rejected, *(yield from likely_mistakes_steps(text, checked))})
    if not found and not _is_wanted(type_, want):
        found = [(yield from _wrong_result(text, checked, environment, want))]
    if found:
        raise ExpressionError(found)
    yield
    return Expression(text, type_, checked, compiled)


def _parsed(text: str, environment: Environment) -> Steps[Checked | None]:
    """Return the tree of an expression that the checker rejects; None if the parser rejects it or it is very large."""
    try:
        serialized = environment.engine.compile(text, disable_check=True).serialize()
    except RuntimeError:
        return None
    return (yield from decode_parsed_steps(serialized)) if len(serialized) <= SERIALIZED_MAX else None


def _too_large(parts: str) -> Diagnostic:
    fault = f"the expression has {parts} parts, {PARTS_MAX:,} are allowed"
    return Diagnostic(1, 1, fault, "split it into several rules")


def _remaining(text: str, environment: Environment, want: Want = VALUE) -> Steps[Remaining]:
    """Return the faults of an expression that follows a hint; one fault if only its result is not wanted."""
    try:
        compiled = environment.engine.compile(text)
    except RuntimeError as error:
        tree = yield from _parsed(text, environment)
        yield
        return faults(str(error), text, tree)
    yield
    checked = yield from decode_steps(compiled.serialize())
    checked = yield from flatten_types_steps(text, checked, environment.engine)
    found = {*_rejected(text, checked, environment)}
    yield
    mistakes = yield from likely_mistakes_steps(text, checked)
    found |= {one for one in mistakes if not one.message.startswith(NO_RESOURCE)}
    is_wanted = want is VALUE or _is_wanted(checked.type_of(checked.root), want)
    return Remaining(len(found) or int(not is_wanted))


def _of_dyn(text: str, checked: Checked, environment: Environment) -> Steps[list[Diagnostic]]:
    """Return calls that always raise: dyn() hides from the checker that a function does not take an argument."""
    found = list[Diagnostic]()
    if not _has_only_known_types(checked):
        return found
    for call in walk(checked.root):
        if not (isinstance(call, Call) and call.function[0] not in "_@!-" and len(found) < COPIES_MAX):
            continue
        for arg in call.args:
            match arg:
                case Call(function="dyn", args=(hidden,)) if is_known(type_ := checked.type_of(hidden)):
                    yield
                    try:
                        environment.engine.compile(substitute(checked.root, arg, operand_text(hidden)))
                    except RuntimeError as error:
                        if f"overload for '{call.function}'" not in str(error):
                            continue
                        at = place(text, checked.positions.get(arg.id, 0) - len("dyn"))
                        fault = f"this always raises an error: `{call.function}` is not defined for {show_type(type_)}"
                        verifier = Verifier(text, checked, Remaining(1), lambda other: _remaining(other, environment))
                        hint, rewritten = yield from verifier.chosen(write(f"double({operand_text(hidden)})", arg))
                        found.append(Diagnostic(*at, fault, hint, rewritten))
    return found


def _has_only_known_types(checked: Checked) -> bool:
    """Report whether values of an unknown type are arguments of functions only: others taint the types of the rest."""
    tainted = {node.id for node in walk(checked.root) if not is_known(checked.type_of(node))}
    for call in walk(checked.root):
        if isinstance(call, Call) and call.function[0] not in "_@!-":
            tainted -= {arg.id for arg in call.args if isinstance(arg, Call) and arg.function == "dyn"}
    return not tainted


def _is_wanted(type_: Type, want: Want) -> bool:
    return type_.name not in (OPTIONAL, "type") and (not want.types or type_.name in want.types)


def _wrong_result(text: str, checked: Checked, environment: Environment, want: Want) -> Steps[Diagnostic]:
    type_ = checked.type_of(checked.root)
    fault = f"expected {want.what}, got {_with_article(type_)}"
    if type_.name == "dyn" and want.types:
        fault = f"expected {want.what}, but the type is known only at run time"
    verifier = Verifier(text, checked, Remaining(1), lambda other: _remaining(other, environment, want))
    hint, rewritten = yield from verifier.chosen(of_result(want.what, checked.root, type_))
    return Diagnostic(1, 1, fault, hint or want.hint, rewritten)


def _with_article(type_: Type) -> str:
    text = show_type(type_)
    return f"{'an' if text[0] in 'aeiouI' else 'a'} {text}"


def _rejected(text: str, checked: Checked, environment: Environment) -> Iterator[Diagnostic]:
    """Yield diagnostics of what the engine accepts and Fairlead does not."""
    constant_reads = set[int]()
    for node in walk(checked.root):
        match node:
            case StructExpr(message=message) if message:
                line, column = place(text, checked.positions.get(node.id, 0))
                yield Diagnostic(
                    line, column, f"objects cannot be constructed ({message})", "compare their fields instead"
                )
            case Select(operand=holder) if opaque := OPAQUE.get(checked.type_of(holder).name):
                line, column = place(text, checked.positions.get(node.id, 0) + 1)
                fault = f"{opaque.shown} has no fields"
                yield Diagnostic(line, column, fault, f"use its functions, such as {opaque.function}")
            case Call(function="cel.@mapInsert"):
                line, column = place(text, checked.positions.get(checked.root.id, 0))
                fault = "the engine cannot evaluate transformMap and transformMapEntry"
                yield Diagnostic(line, column, fault, "use transformList or map()")
        if (read := _constant_key(node)) is not None:
            holder, key, at = read
            constant_reads.add(holder.id)
            if isinstance(holder, Ident) and checked.names.get(holder.id) == "data":
                yield from _undeclared_data(text, checked, environment, key, at)
    for node in walk(checked.root):
        if _is_annotations_of_placed(checked, node) and node.id not in constant_reads:
            line, column = place(text, checked.positions.get(node.id, 0) + 1)
            fault = "annotations of pods on the node can be read only with a literal key"
            yield Diagnostic(line, column, fault, "write annotations['key'] or annotations[?'key']")


def _constant_key(node: Node) -> tuple[Node, str, Node] | None:
    """Return the map, the key and the node of the key if a node reads a literal key of a map; None for other nodes."""
    match node:
        case Select(operand=holder, field=key):
            return holder, key, node
        case Call(function="_[_]" | "_[?_]" | "_?._", args=(holder, Const(value=str(key)) as at)):
            return holder, key, at
        case Call(function="@in", args=(Const(value=str(key)) as at, holder)):
            return holder, key, at
    return None


def _undeclared_data(text: str, checked: Checked, environment: Environment, key: str, at: Node) -> Iterator[Diagnostic]:
    if key in environment.data:
        return
    line, column = place(text, checked.positions.get(at.id, 0) + isinstance(at, Select))
    declared = f"declared: {', '.join(sorted(environment.data))}" if environment.data else "the policy declares none"
    hint = did_you_mean(key, environment.data) or declared
    yield Diagnostic(line, column, f"the policy's data has no entry `{key}`", hint)


def _is_annotations_of_placed(checked: Checked, node: Node) -> bool:
    match node:
        case Select(operand=holder, field="annotations", test_only=False):
            return checked.type_of(holder).name == f"{PACKAGE}.PlacedPodMeta"
        case Call(function="_?._", args=(holder, Const(value="annotations"))):
            return "PlacedPodMeta" in str(checked.type_of(holder))
    return False
