"""Hints for values of the wrong type: what to write so that the types fit.

The engine says which types met, the tree which expressions had them. Most hints are an expression to copy.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.cel.hints.index_hints import SIZES, asks_for_admission, of_index
from fairlead.cel.hints.rewrites import (
    ARITHMETIC,
    METHODS,
    NUMBERS,
    Hints,
    Operand,
    Rewriting,
    as_double,
    as_doubles,
    as_one_number,
    by_methods,
    exists,
    in_doubles,
    in_text,
    is_amount,
    is_free_text,
    key_of_items,
    presence,
    read_as_optional,
    with_default,
    write,
)
from fairlead.cel.hints.time_hints import of_clock, of_times
from fairlead.cel.syntax.ast import OPTIONAL, Call, Const, ListExpr, Node, Select, Type
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import PACKAGE, messages

_ORDERS: Final = ("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_")
_SUM: Final = 4  # how tightly `+` binds
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
    ("a number", "Quantity"): "{operand}.asApproximateFloat()",
    ("a number", "duration"): "{operand}.getSeconds()",
    ("a number", "list"): "{operand}.size()",
    ("a number", "map"): "{operand}['cpu']",
    ("a string", "list"): "{operand}.join(',')",
    **{("a string", one): "string({text})" for one in ("int", "uint", "double", "bool", "timestamp", "duration")},
}
_ITEMS: Final = ("string", "double")  # of lists that can be joined, and of maps of amounts


def of_result(expected: str, node: Node, type_: Type) -> Hints:
    """Yield hints for an expression that must have another type."""
    if isinstance(node, Const):
        if isinstance(node.value, str) and expected != "a string":
            yield Rewriting("remove the quotes", node.value, node)
        return
    if type_.name == OPTIONAL and (expected != "a bool" or type_.params[0].name == "bool"):
        yield from write(with_default(node, type_), node)
        return
    if (expected, type_.name) in (("a string", "list"), ("a number", "map")) and type_.params[-1].name not in _ITEMS:
        return
    if (expected, type_.name) == ("a number", "string"):
        yield from write(as_double(node, type_), node)
        return
    template = _RESULTS.get((expected, type_.name.removeprefix(f"{PACKAGE}.")), "")
    sides = {"operand": operand_text(node), "sum": operand_text(node, _SUM), "test": operand_text(node, 1)}
    yield from write(template.format(text=text(node), **sides), node)


def of_operator(call: Call, types: Sequence[Type], around: Sequence[Node]) -> Hints:
    """Yield hints for an operator that is not defined for its operands; `around` has the innermost part first."""
    function, args = call.function, call.args
    operands = list(zip(args, types, strict=True))
    for node, type_ in operands:
        if type_.name == OPTIONAL and not (function == "!_" and type_.params[0].name != "bool"):
            yield from write(with_default(node, type_), node)
            return
    match function, operands:
        case ("_[_]", [held, key]):
            match around, held[1]:
                case ([Call(function="_==_", args=(_, state)) as compared, *_], Type(name="list", params=(item,))):
                    if "status" in messages().get(item.name, ()):
                        test = f"x.type == {text(key[0])} && x.status == {text(state)}"
                        yield from write(exists(held[0], test), compared)
            yield from of_index(call, *held, *key, around)
        case ("_?_:_", [(_, Type(name="bool")), (then, one), (otherwise, other)]):
            yield from as_one_number(then, one, otherwise, other)
        case ("_||_", [(absent, Type(name="string" | "double")), (Const() as default, _)]) if made := read_as_optional(
            absent
        ):
            yield from write(f"{made}.orValue({text(default)})", call)
            yield f"compare `{text(absent)}` with something"
        case ("_||_", [(Const(value=str()) as word, _), (Const(value=str()) as other, _)]) if around:
            match around[0]:
                case Call(function="_==_", args=(asked, either)) if either is call:
                    yield from write(f"{text(asked)} in [{text(word)}, {text(other)}]", around[0])
            yield f"compare `{text(word)}` with something"
        case ("_||_", [(Call(function="_==_", args=(compared, Const() as one)), _), (Const() as other, _)]):
            yield from write(f"{text(compared)} in [{text(one)}, {text(other)}]", call)
        case ("!_" | "_&&_" | "_||_", _) | ("_?_:_", [(_, Type(name="int" | "uint" | "double" | "string")), *_]):
            node, type_ = next((one for one in operands if one[1].name != "bool"), operands[0])
            yield from of_result("a bool", node, type_) if function != "!_" else ()
            yield f"compare `{text(node)}` with something"
        case (_, [left, right]):
            if is_asking := asks_for_admission(args):
                yield is_asking
            elif "null" in (types[0].name, types[1].name):
                yield from _of_null(call, left, right)
            else:
                yield from _of_between(call, around)
                yield from of_clock(call, left, right)
                yield from _of_pair(call, left, right)
                yield from _of_chain(call, types, around)


def _of_between(call: Call, around: Sequence[Node]) -> Iterator[Rewriting]:
    """Yield two comparisons for one with two signs, such as `1 < free.cpu < 5`."""
    match call, around:
        case Call(function=one, args=(low, middle)), [Call(function=two, args=(first, high)) as whole, *_] if (
            first is call and one in _ORDERS and two in _ORDERS
        ):
            between, (sign, other) = in_doubles(middle), (one.strip("_"), two.strip("_"))
            yield from write(f"{in_doubles(low)} {sign} {between} && {between} {other} {in_doubles(high)}", whole)


def _of_chain(call: Call, types: Sequence[Type], around: Sequence[Node]) -> Iterator[Rewriting]:
    """Yield the whole of some arithmetic in doubles, if a whole number in it met a double."""
    if not {one.name for one in types} <= NUMBERS:
        return
    whole, compared = call, None
    for outer in around:
        if not isinstance(outer, Call) or outer.function not in ARITHMETIC:
            compared = outer if isinstance(outer, Call) and outer.function in _ORDERS else None
            break
        whole = outer
    sides = whole.args if whole is call and call.function not in ARITHMETIC else (whole,)
    for side in sides:
        if isinstance(side, Call) and side.function in ARITHMETIC:
            yield from write(in_doubles(side), side)
    if compared is not None:
        one, other = map(in_doubles, compared.args)
        yield from write(f"{one} {compared.function.strip('_')} {other}", compared)


def _of_pair(call: Call, left: Operand, right: Operand) -> Hints:
    sign = "in" if call.function == "@in" else call.function.strip("_")
    names = left[1].name, right[1].name
    if sign == "in":
        yield from of_in(call, left, right)
    elif "Quantity" in names:
        yield from _of_quantities(sign, call, left, right)
    elif "Semver" in names:
        yield from by_methods(sign, call, left, right, of="Semver")
    elif "timestamp" in names or "duration" in names:
        yield from of_times(sign, call, left, right)
    elif sign == "+" and names[0] == "list":
        yield from write(f"[{text(right[0])}]", right[0])
    elif sign == "+" and names == ("string", "int") and isinstance(right[0], Const) and is_free_text(left[0]):
        yield from write(f"string({text(right[0])})", right[0])
        yield from write(f"int({text(left[0])})", left[0])
    elif sign == "+" and names[0] == "string" and not is_amount(left[0]):
        yield from write(f"string({text(right[0])})", right[0])
    elif sized := _sized(sign, call, left, right):
        yield sized
    elif isinstance(left[0], Call) and names[0] == "bool" and names[1] in NUMBERS:  # as in `1 < x < 5`
        yield from write(f"{text(left[0])} && {text(left[0].args[-1])} {sign} {text(right[0])}", call)
    elif "string" not in names:
        yield from as_one_number(*left, *right)
    elif names[0] == "string":
        yield from _of_string(sign, call, left, right)
    else:
        yield from _of_string(sign, call, right, left, swapped=True)


def _sized(sign: str, call: Call, left: Operand, right: Operand) -> Rewriting | None:
    """Return the hint for a list or a map beside a number, or a list beside a string."""
    for (node, type_), (other, other_type) in ((left, right), (right, left)):
        if type_.name == "map" and Type("double") in type_.params:
            code = f"{operand_text(node)}['cpu']"
            more = f" {as_double(other, other_type)}" if other_type.name in NUMBERS else ""
            whole = f"{code} {sign}{more}" if node is left[0] else f"{more[1:]} {sign} {code}"
            return Rewriting(f"write `{code}` for one of them", whole if more else code, call if more else node)
        if type_.name in ("list", "map") and other_type.name in NUMBERS:
            size = f"{operand_text(node)}.size()"
            return Rewriting(f"write `{size}`", size, node)
        if (type_.name, other_type.name) == ("list", "string") and sign in ("==", "!="):
            found = f"{text(other)} in {text(node)}"
            return next(write(found if sign == "==" else f"!({found})", call))
    return None


def _of_string(
    sign: str, call: Call, string: Operand, scalar: Operand, *, swapped: bool = False
) -> Iterator[Rewriting]:
    """Yield what to write for a string that meets a number or a bool."""
    (node, _), (other, other_type) = string, scalar
    match node, other_type.name:
        case (Const(value=str(written)), "bool"):
            yield from write(written.lower() if written.lower() in ("true", "false") else "", node)
            return
        case (Const(value=str(written)), "int"):
            yield from write(written if re.fullmatch(r"-?\d+", written) else "", node)
            return
        case (Select(operand=held, field=field), "int") if field in SIZES:
            yield from write(f"{operand_text(held)}.size()", node)
            return
    if isinstance(other, Const) and sign in ("==", "!="):
        is_status = isinstance(node, Select) and node.field == "status" and other_type.name == "bool"
        yield from write(f"'{text(other).capitalize() if is_status else text(other)}'", other)
    elif other_type.name == "double" or is_amount(node):
        yield from as_doubles(sign, call, scalar, string) if swapped else as_doubles(sign, call, string, scalar)
        if is_amount(node) and other_type.name == "int" and not swapped and sign in METHODS:
            yield from write(f"quantity({text(node)}).{METHODS[sign]}({text(other)})", call)
    elif other_type.name == "int" and is_free_text(node):
        yield from write(f"int({text(node)})", node)


def _of_quantities(sign: str, call: Call, left: Operand, right: Operand) -> Iterator[Rewriting]:
    (_, one), (_, two) = left, right
    if sign in ("*", "/", "%") or ({one.name, two.name} & NUMBERS and not (sign in ("+", "-") and two.name == "int")):
        return as_doubles(sign, call, left, right)
    return by_methods(sign, call, left, right, of="Quantity")


def _of_null(call: Call, left: Operand, right: Operand) -> Hints:
    asked = presence(left[0] if right[1].name == "null" else right[0])
    if call.function == "_==_" and asked:
        asked = f"!{asked}" if asked.startswith("has(") else f"!({asked})"
    yield from write(asked, call, before="absent is not null: ")
    yield "absent is not null"


def of_in(call: Call, item: Operand, operand: Operand) -> Iterator[Rewriting]:
    """Yield what to write for `item in held`."""
    match operand[0], operand[1].name:
        case (Const(value=str(listed)), "string") if not isinstance(item[0], Const):
            words = [part.strip() for part in listed.split(",")]
            listing = ", ".join(text(Const(0, word)) for word in words)
            yield from write(f"{text(item[0])} in [{listing}]", call, before="`in` needs a list: ")
        case (_, "string"):
            yield from write(in_text(item[0], operand[0]), call)
        case (_, "net.CIDR"):
            yield from write(f"{operand_text(operand[0])}.containsIP({text(item[0])})", call)
        case (ListExpr(elements=elements), _) if item[1].name in ("int", "string"):
            converted = [_converted(element, item[1].name) for element in elements]
            yield from write(f"[{', '.join(converted)}]" if all(converted) else "", operand[0])
    if item[1].name == "string" and (key := key_of_items(operand[1])):
        yield from write(exists(operand[0], f"x.{key} == {text(item[0])}"), call)


def _converted(element: Node, to: str) -> str:
    """Return an element of a list as a literal of another type; "" if it is none."""
    match element, to:
        case (Const(value=str(written)), "int") if re.fullmatch(r"-?\d+", written):
            return written
        case (Const(value=int(number)), "string") if not isinstance(number, bool):
            return f"'{number}'"
    return ""
