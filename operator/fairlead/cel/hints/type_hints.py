"""Hints for values of the wrong type: what to write so that the types fit.

The engine says which types met; the tree says which expressions had them. Most hints are an expression to copy; ""
means that the engine's sentence stands alone.
"""

import re
from collections.abc import Sequence
from typing import Final

from fairlead.cel.hints.rewrites import (
    NUMBERS,
    Operand,
    as_doubles,
    as_one_number,
    exists,
    is_amount,
    key_of_items,
    presence,
    read_as_optional,
    with_default,
    write,
)
from fairlead.cel.syntax.ast import OPTIONAL, Call, Const, Ident, Node, Select, Type, walk
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import PACKAGE, messages

_SUM: Final = 4  # how tightly `+` binds
_SIZES: Final = ("length", "size", "len", "count")
_QUANTITY_METHODS: Final = {">": "isGreaterThan", "<": "isLessThan", "+": "add", "-": "sub"}
_ADMISSION: Final = ("operation", "userInfo", "object", "oldObject", "namespace", "kind", "resource", "dryRun")
# What is expected, and the type that the expression has instead.
_RESULTS: Final = {
    ("a bool", "Quantity"): "{operand}.isGreaterThan(quantity('0'))",
    ("a bool", "list"): "{operand}.size() > 0",
    ("a bool", "map"): "{operand}.size() > 0",
    ("a bool", "string"): "{sum} == '...'",
    ("a bool", "int"): "{sum} > 0",
    ("a bool", "double"): "{sum} > 0.0",
    ("a bool", "optional_type"): "{operand}.hasValue()",
    ("a number", "bool"): "{test} ? 100.0 : 0.0",
    ("a number", "string"): "double({text})",
    ("a number", "Quantity"): "{operand}.asApproximateFloat()",
    ("a number", "duration"): "{operand}.getSeconds()",
    ("a number", "list"): "{operand}.size()",
    ("a number", "map"): "{operand}['cpu']",
    ("a string", "list"): "{operand}.join(',')",
    **{("a string", one): "string({text})" for one in ("int", "uint", "double", "bool", "timestamp", "duration")},
}
_ITEMS: Final = ("string", "double")  # of lists that can be joined, and of maps of amounts


def of_result(expected: str, node: Node, type_: Type) -> str:
    """Return a hint for an expression that must have another type."""
    if isinstance(node, Const):
        return "remove the quotes" if isinstance(node.value, str) and expected != "a string" else ""
    if type_.name == OPTIONAL and (expected != "a bool" or type_.params[0].name == "bool"):
        return write(with_default(node, type_))
    if (expected, type_.name) in (("a string", "list"), ("a number", "map")) and type_.params[-1].name not in _ITEMS:
        return ""
    template = _RESULTS.get((expected, type_.name.removeprefix(f"{PACKAGE}.")), "")
    sides = {"operand": operand_text(node), "sum": operand_text(node, _SUM), "test": operand_text(node, 1)}
    return write(template.format(text=text(node), **sides))


def of_operator(function: str, args: Sequence[Node], types: Sequence[Type]) -> str:
    """Return a hint for an operator that is not defined for the types of its operands."""
    operands = list(zip(args, types, strict=True))
    for node, type_ in operands:
        if type_.name == OPTIONAL and not (function == "!_" and type_.params[0].name != "bool"):
            return write(with_default(node, type_))
    match function, operands:
        case ("_[_]", [held, key]):
            return _of_index(*held, *key)
        case ("_?_:_", [(_, Type(name="bool")), (then, one), (otherwise, other)]):
            return write(as_one_number(then, one, otherwise, other))
        case ("_||_", [(Call(function="_==_", args=(compared, Const() as one)), _), (Const() as other, _)]):
            return write(f"{text(compared)} in [{text(one)}, {text(other)}]")
        case ("!_" | "_&&_" | "_||_", _) | ("_?_:_", [(_, Type(name="int" | "uint" | "double" | "string")), *_]):
            node, type_ = next((one for one in operands if one[1].name != "bool"), operands[0])
            hint = of_result("a bool", node, type_) if function != "!_" else ""
            return hint or f"compare `{text(node)}` with something"
        case (_, [left, right]):
            sign = "in" if function == "@in" else function.strip("_")
            return _asks_for_admission(args) or _of_null(sign, left, right) or _of_pair(sign, left, right)
    return ""


def _of_pair(sign: str, left: Operand, right: Operand) -> str:
    names = left[1].name, right[1].name
    if sign == "in":
        return _of_in(left, right)
    if "Quantity" in names:
        return write(_of_quantities(sign, left, right))
    if "timestamp" in names or "duration" in names:
        return _of_times(left, right) if sign not in ("*", "/", "%") else ""
    if sign == "+" and names[0] == "list":
        return write(f"[{text(right[0])}]")
    if sign == "+" and names[0] == "string" and not is_amount(left[0]):
        return write(f"string({text(right[0])})")
    for (node, type_), (other, other_type) in ((left, right), (right, left)):
        if type_.name == "map" and Type("double") in type_.params:
            return f"write `{operand_text(node)}['cpu']` for one of them"
        if type_.name in ("list", "map") and other_type.name in NUMBERS:
            return write(f"{operand_text(node)}.size()")
        if (type_.name, other_type.name) == ("list", "string") and sign in ("==", "!="):
            found = f"{text(other)} in {text(node)}"
            return write(found if sign == "==" else f"!({found})")
    if isinstance(left[0], Call) and names[0] == "bool" and names[1] in NUMBERS:  # as in `1 < x < 5`
        return write(f"{text(left[0])} && {text(left[0].args[-1])} {sign} {text(right[0])}")
    if "string" not in names:
        return write(as_one_number(*left, *right))
    return write(_of_string(sign, left, right) if names[0] == "string" else _of_string(sign, right, left, swapped=True))


def _of_string(sign: str, string: Operand, scalar: Operand, *, swapped: bool = False) -> str:
    """Return what to write for a string that meets a number or a bool."""
    (node, _), (other, other_type) = string, scalar
    match node, other_type.name:
        case (Const(value=str(written)), "bool"):
            return written.lower() if written.lower() in ("true", "false") else ""
        case (Const(value=str(written)), "int"):
            return written if re.fullmatch(r"-?\d+", written) else ""
        case (Select(operand=held, field=field), "int") if field in _SIZES:
            return f"{operand_text(held)}.size()"
    if isinstance(other, Const) and sign in ("==", "!="):
        return f"'{text(other)}'"
    if other_type.name == "double" or is_amount(node):
        return as_doubles(sign, scalar, string) if swapped else as_doubles(sign, string, scalar)
    return f"int({text(node)})" if other_type.name == "int" else ""


def _of_quantities(sign: str, left: Operand, right: Operand) -> str:
    (node, one), (other, two) = left, right
    if {one.name, two.name} & NUMBERS and not (sign in ("+", "-") and two.name == "int"):
        return as_doubles(sign, left, right)
    target = operand_text(node) if one.name == "Quantity" else f"quantity({text(node)})"
    argument = text(other) if two.name in ("Quantity", "int") else f"quantity({text(other)})"
    if sign in _QUANTITY_METHODS:
        return f"{target}.{_QUANTITY_METHODS[sign]}({argument})"
    return as_doubles(sign, left, right) if sign in ("*", "/", "%") else f"{target}.compareTo({argument}) {sign} 0"


def _of_times(left: Operand, right: Operand) -> str:
    for (node, type_), (other, other_type) in ((left, right), (right, left)):
        match type_.name, other_type.name, other:
            case ("timestamp", "duration", _):
                return f"write `now - {text(node)}` for an age"
            case ("timestamp" | "duration" as name, "string", Const()):
                return write(f"{name}({text(other)})")
            case ("timestamp" | "duration", "int", Const()):
                return write(f"duration('{text(other)}s')")
    return "write a duration as `duration('90s')`"


def _of_null(sign: str, left: Operand, right: Operand) -> str:
    if "null" not in (left[1].name, right[1].name):
        return ""
    asked = presence(left[0] if right[1].name == "null" else right[0])
    if sign == "==" and asked:
        asked = f"!{asked}" if asked.startswith("has(") else f"!({asked})"
    return f"absent is not null: {write(asked)}" if asked else "absent is not null"


def _of_in(item: Operand, held: Operand) -> str:
    if held[1].name == "string" and not isinstance(held[0], Const):
        return write(f"{operand_text(held[0])}.contains({text(item[0])})")
    key = key_of_items(held[1]) if item[1].name == "string" else ""
    return write(exists(held[0], f"x.{key} == {text(item[0])}")) if key else ""


def _of_index(held: Node, of: Type, key: Node, by: Type) -> str:
    match of.name, by.name, key:
        case ("list", "string", _):
            if of.params[0].name == "string":
                return write(f"{text(key)} in {text(held)}")
            if not (named := key_of_items(of)):
                return ""
            ready = " && x.status == 'True'" if named == "type" else " ..."
            return write(exists(held, f"x.{named} == {text(key)}{ready}"))
        case ("map", "int", _):
            return write(f"{operand_text(held)}['{text(key)}']")
        case ("string", "int", _):
            return write(f"{operand_text(held)}.charAt({text(key)})")
        case (name, "string", Const(value=str(field))) if field in messages().get(name, ()):
            return write(f"{operand_text(held)}.{field}")
    return ""


def of_field(held: Node, field: str, type_: Type) -> str:
    """Return a hint for a field of a value that has none."""
    if hint := _asks_for_admission([held]):
        return hint
    if field in _SIZES:
        return write(f"{operand_text(held)}.size()")
    if type_.name == "list" and field in messages().get(type_.params[0].name, ()):
        return write(exists(held, f"x.{field} ..."))
    if type_.name == "list":
        return _of_index(held, type_, Const(0, field), Type("string"))
    return ""


def of_call(name: str, args: Sequence[Node], types: Sequence[Type]) -> str:
    """Return a hint for a function that does not take its arguments; a method's target comes first."""
    if not args:
        return ""
    held, rest = operand_text(args[0]), ", ".join(map(text, args[1:]))
    if name in ("orValue", "hasValue", "value", "or", "optMap") and types[0].name != OPTIONAL:
        made = read_as_optional(args[0])
        return write(f"{made}.{name}({rest})" if made else "")
    if types[0].name == OPTIONAL:
        of = types[0].params[0].name
        if name in ("int", "uint", "double", "quantity") and of == "string":
            return write(f"{held}.orValue('0')")
        return f"the default must have the type {of}" if name == "orValue" else write(with_default(args[0], types[0]))
    match name, args, [type_.name for type_ in types]:
        case ("contains", (_, item), ["list" | "map", _]):
            return _of_in((item, types[1]), (args[0], types[0])) or write(f"{rest} in {text(args[0])}")
        case (_, _, ["Quantity", "string"]):
            return write(f"quantity({rest})")
        case ("quantity", (Const() as amount,), _):
            return write(f"quantity('{text(amount)}')")
        case ("format", _, _):
            return write(f"{held}.format([{rest}])")
        case ("asInteger" | "asApproximateFloat" | "sign" | "isInteger", _, ["string"]):
            return write(f"quantity({text(args[0])}).{name}()")
        case ("sort", _, ["list"]):
            return write(f"{held}.sortBy(x, ...)")
    return ""


def _asks_for_admission(args: Sequence[Node]) -> str:
    for node in (node for arg in args for node in walk(arg)):
        match node:
            case Select(operand=Ident(name="request"), field=field) if field in _ADMISSION:
                return "`request` is what the pod requests (`request['cpu']`); rules do not see the admission request"
    return ""
