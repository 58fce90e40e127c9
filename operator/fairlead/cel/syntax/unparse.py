"""Text of expressions from their trees, for explanations and hints, which show parts of a rule."""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairlead.cel.syntax.ast import Call, Comprehension, Const, Ident, ListExpr, Node, Select, StructExpr
from fairlead.cel.values.value_types import UInt

_BINARY: Final[Mapping[str, int]] = {
    "_||_": 1,
    "_&&_": 2,
    "_==_": 3,
    "_!=_": 3,
    "_<_": 3,
    "_<=_": 3,
    "_>_": 3,
    "_>=_": 3,
    "@in": 3,
    "_+_": 4,
    "_-_": 4,
    "_*_": 5,
    "_/_": 5,
    "_%_": 5,
}
_UNARY, POSTFIX = 6, 7
_WRITTEN: Final[Mapping[str, str]] = {"math.@max": "math.greatest", "math.@min": "math.least"}


class OptionalMacro(NamedTuple):
    """Macro `operand.optMap(variable, body)` or `operand.optFlatMap(variable, body)`, which the tree has expanded."""

    name: str
    operand: Node
    variable: str
    body: Node


def optional_macro(node: Node) -> OptionalMacro | None:
    """Return the macro that a node was written as; None for other nodes."""
    match node:
        case Call(
            function="_?_:_",
            args=(
                Call(function="hasValue", args=(operand,)),
                Call(function="optional.of", args=(Comprehension(accumulator=variable, init=init, result=body),)),
                Call(function="optional.none"),
            ),
        ) if _is_value_of(init, operand):
            return OptionalMacro("optMap", operand, variable, body)
        case Call(
            function="_?_:_",
            args=(
                Call(function="hasValue", args=(operand,)),
                Comprehension(accumulator=variable, init=init, result=body),
                Call(function="optional.none"),
            ),
        ) if _is_value_of(init, operand):
            return OptionalMacro("optFlatMap", operand, variable, body)
    return None


def _is_value_of(node: Node, operand: Node) -> bool:
    match node:
        case Call(function="value", args=(again,)):
            return text(again) == text(operand)
    return False


def text(node: Node) -> str:
    """Return the text of an expression, with macros as they are written."""
    return _text(node)[0]


def _text(node: Node) -> tuple[str, int]:
    """Return the text, and how tightly it binds."""
    match node:
        case Const():
            return _literal(node.value), POSTFIX
        case Ident(name=name):
            return name, POSTFIX
        case Select(operand=operand, field=field, test_only=test_only):
            made = f"{operand_text(operand, POSTFIX)}.{field}"
            return (f"has({made})" if test_only else made), POSTFIX
        case ListExpr(elements=elements, optional=optional):
            parts = (("?" if at in optional else "") + text(part) for at, part in enumerate(elements))
            return f"[{', '.join(parts)}]", POSTFIX
        case StructExpr(message=message, entries=entries):
            pairs = (
                f"{'?' if entry.optional else ''}{entry.key if isinstance(entry.key, str) else text(entry.key)}: "
                f"{text(entry.value)}"
                for entry in entries
            )
            return f"{message}{{{', '.join(pairs)}}}", POSTFIX
        case Comprehension():
            return _macro(node), POSTFIX
        case Call():
            return _call(node)
    return "...", POSTFIX


def operand_text(node: Node, binding: int = POSTFIX) -> str:
    """Return the text, in brackets if it binds less tightly than `binding`; by default a `.` can follow it."""
    made, own = _text(node)
    return made if own >= binding else f"({made})"


def _call(node: Call) -> tuple[str, int]:
    if (macro := optional_macro(node)) is not None:
        body = text(macro.body)
        return f"{operand_text(macro.operand, POSTFIX)}.{macro.name}({macro.variable}, {body})", POSTFIX
    match node:
        case Call(function=function, args=(left, right)) if function in _BINARY:
            level = _BINARY[function]
            sign = "in" if function == "@in" else function.strip("_")
            return f"{operand_text(left, level)} {sign} {operand_text(right, level + 1)}", level
        case Call(function="!_" | "-_" as function, args=(operand,)):
            return f"{function[0]}{operand_text(operand, _UNARY)}", _UNARY
        case Call(function="_?_:_", args=(test, then, otherwise)):
            return f"{operand_text(test, 1)} ? {operand_text(then, 1)} : {text(otherwise)}", 0
        case Call(function="_[_]" | "_[?_]" as function, args=(operand, key)):
            return f"{operand_text(operand, POSTFIX)}[{'?' if '?' in function else ''}{text(key)}]", POSTFIX
        case Call(function="_?._", args=(operand, Const(value=str(field)))):
            return f"{operand_text(operand, POSTFIX)}.?{field}", POSTFIX
        case Call(function="@sortByAssociatedKeys", args=(operand, Comprehension(variable=name, step=step))):
            return f"{operand_text(operand, POSTFIX)}.sortBy({name}, {_added(step)})", POSTFIX
        case Call(member=True, args=(target, *rest)):
            return f"{operand_text(target, POSTFIX)}.{node.function}({', '.join(map(text, rest))})", POSTFIX
    return f"{_WRITTEN.get(node.function, node.function)}({', '.join(map(text, node.args))})", POSTFIX


def _macro(node: Comprehension) -> str:
    names = ", ".join(filter(None, (node.variable, node.variable2)))
    operand = operand_text(node.range, POSTFIX)
    match node:
        case Comprehension(range=ListExpr(elements=())):
            if node.accumulator.startswith("@"):
                return text(node.result).replace(node.accumulator, text(node.init))
            return f"cel.bind({node.accumulator}, {text(node.init)}, {text(node.result)})"
        case Comprehension(step=Call(function="_||_", args=(_, test))):
            return f"{operand}.exists({names}, {text(test)})"
        case Comprehension(step=Call(function="_&&_", args=(_, test))):
            return f"{operand}.all({names}, {text(test)})"
        case Comprehension(step=Call(function="_?_:_", args=(test, _, _)), init=Const()):
            return f"{operand}.exists_one({names}, {text(test)})"
        case Comprehension(step=Call(function="_?_:_", args=(test, step, _))):
            added = _added(step)
            if added == node.variable and not node.variable2:
                return f"{operand}.filter({names}, {text(test)})"
            return f"{operand}.{_collects(node)}({names}, {text(test)}, {added})"
    return f"{operand}.{_collects(node)}({names}, {_added(node.step)})"


def _collects(node: Comprehension) -> str:
    if isinstance(node.init, ListExpr):
        return "transformList" if node.variable2 else "map"
    return "transformMap"


def _added(step: Node) -> str:
    match step:
        case Call(function="_+_", args=(_, ListExpr(elements=(element,)))):
            return text(element)
        case Call(function="cel.@mapInsert", args=(_, _, value)):
            return text(value)
    return "..."


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UInt():
            return f"{int(value)}u"
        case str():
            shown = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
            return f"'{shown}'"
        case bytes():
            return f"b{_literal(value.decode('latin-1'))}"
    return str(value)
