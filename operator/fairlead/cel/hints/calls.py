"""Hints for calls: of functions that do not take their arguments, and of those that other languages have."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from fairlead.cel.hints.rewrites import (
    Hints,
    Rewriting,
    in_doubles,
    key_of_items,
    read_as_optional,
    with_default,
    write,
)
from fairlead.cel.hints.time_hints import of_clock
from fairlead.cel.hints.type_hints import of_in
from fairlead.cel.syntax.ast import OPTIONAL, Call, Const, Ident, Node, Type
from fairlead.cel.syntax.unparse import operand_text, text

_NAMESPACES = ("math", "Math", "strings", "string", "lists", "sets", "re", "regex", "regexp", "util")


_ONLY_LOG2: Final = "the only logarithm is that of 2: "
_OF_LOG2: Final = {"log": 0.6931471805599453, "ln": 0.6931471805599453, "log10": 0.3010299956639812}
"""Other logarithms of 2."""
_POWERS: Final = (2, 3)
_PRODUCT: Final = 5  # how tightly `*` binds


def is_namespace(node: Node) -> bool:
    """Report whether a part is the name of a library, such as `math` in `math.log(x)`."""
    return isinstance(node, Ident) and node.name in _NAMESPACES


def of_another_library(call: Call) -> Hints:
    """Yield how to write a call of a function that CEL does not have; nothing for other names."""
    given = call.args[1:] if call.member and is_namespace(call.args[0]) else call.args
    held, rest = (given[0], given[1:]) if given else (None, ())
    match call.function, held, rest:
        case ("now" | "utcnow", None, ()) | ("now" | "utcnow", Ident(name="time" | "Time" | "Date" | "datetime"), ()):
            yield Rewriting("the time is a value: write `now`", "now", call, is_name=True)
        case ("log" | "ln" | "log10" as name, Node() as one, ()):
            factor = _OF_LOG2[name]
            yield from write(f"log2({text(one)}) * {factor!r}", call, before=_ONLY_LOG2)
            yield from write(f"log2(double({text(one)})) * {factor!r}", call, before=_ONLY_LOG2)
        case ("pow", Node() as one, (Const(value=int() | float() as power),)) if power in _POWERS:
            yield from write(" * ".join([operand_text(one, _PRODUCT)] * int(power)), call)
        case ("not", Node() as one, ()) if not call.member:
            yield from write(f"!({text(one)})", call)
            yield "write `!(...)`"
        case ("keys", Node() as one, ()):
            yield Rewriting("macros loop over the keys of a map: leave it out", operand_text(one), call)
        case ("hasLabel", Node() as one, (label,)) if call.member:
            yield from write(f"{text(label)} in {operand_text(one)}.metadata.labels", call)
        case ("get", Node() as one, (key,)):
            yield from write(f"{operand_text(one)}[?{text(key)}].orValue('')", call)
            yield from write(f"{operand_text(one)}[?{text(key)}].orValue(0.0)", call)
        case ("get" | "getOrDefault", Node() as one, (key, default)):
            yield from write(f"{operand_text(one)}[?{text(key)}].orValue({text(default)})", call)
            made = f"{operand_text(one)}[?{text(key)}].orValue({in_doubles(default)})"
            yield Rewriting(f"write `{made}`", made, call, is_name=True)
        case ("default" | "coalesce" | "ifNull", Node() as one, (default,)) if not call.member:
            made = read_as_optional(one)
            yield from write(f"{made}.orValue({text(default)})" if made else "", call)
        case ("sprintf" | "printf" | "Sprintf", Const(value=str()) as one, _):
            yield from write(f"{text(one)}.format([{', '.join(map(text, rest))}])", call)
        case ("age", Node() as one, ()):
            yield from write(f"now - {operand_text(one)}", call)
        case ("isEmpty" | "empty", Node() as one, ()):
            yield from write(f"{operand_text(one)}.size() == 0", call)
        case ("isNotEmpty" | "notEmpty", Node() as one, ()):
            yield from write(f"{operand_text(one)}.size() > 0", call)
        case ("equals" | "eq", Node() as one, (other,)):
            yield from write(f"{operand_text(one)} == {operand_text(other)}", call)
        case ("find", Node() as one, (pattern,)):
            yield from write(f"regex.extract({text(one)}, {text(pattern)}).orValue('')", call)
        case ("findAll", Node() as one, (pattern, *_)):
            yield from write(f"regex.extractAll({text(one)}, {text(pattern)})", call)
        case ("isSorted", Node() as one, ()):
            yield from write(f"{operand_text(one)} == {operand_text(one)}.sort()", call)
        case ("includes" | "has" | "containsKey" | "hasKey", Node() as one, (item,)) if call.member:
            yield from write(f"{operand_text(one)}.contains({text(item)})", call)
            yield from write(f"{text(item)} in {operand_text(one)}", call)
        case _:
            yield from _of_items(call)


def _of_items(call: Call) -> Hints:
    """Yield how to write a loop over a list with a variable and a test."""
    match call:
        case Call(function="count", args=(held, Ident(name=name), test)):
            yield from write(f"{operand_text(held)}.filter({name}, {text(test)}).size()", call)
        case Call(function="none" | "noneMatch", args=(held, Ident(name=name), test)):
            yield from write(f"!{operand_text(held)}.exists({name}, {text(test)})", call)
        case Call(function="find" | "findFirst", args=(held, Ident(name=name), test)):
            yield from write(f"{operand_text(held)}.filter({name}, {text(test)})", call)


def with_name(call: Call, name: str, roots: Collection[str]) -> Iterator[str]:
    """Yield the ways to call another function with the same arguments: as a function and as a method."""
    args = call.args
    if call.member and isinstance(args[0], Ident) and args[0].name in _NAMESPACES and args[0].name not in roots:
        args = args[1:]  # `Math.max(1, 2)`, `strings.HasPrefix(name, 'a')`
    elif call.member and "." not in name:
        yield f"{operand_text(args[0])}.{name}({', '.join(map(text, args[1:]))})"
    yield f"{name}({', '.join(map(text, args))})"
    if args and "." not in name:
        yield f"{operand_text(args[0])}.{name}({', '.join(map(text, args[1:]))})"


def of_call(call: Call, types: Sequence[Type], around: Sequence[Node]) -> Hints:
    """Yield hints for a function that does not take its arguments; a method's target comes first."""
    name, args = call.function, call.args
    if not args:
        return
    held, rest = operand_text(args[0]), ", ".join(map(text, args[1:]))
    if name in ("orValue", "hasValue", "value", "or", "optMap") and types[0].name != OPTIONAL:
        made = read_as_optional(args[0])
        yield from write(f"{made}.{name}({rest})" if made else "", call)
        return
    if types[0].name == OPTIONAL:
        of = types[0].params[0].name
        if name in ("int", "uint", "double", "quantity") and of == "string":
            yield from write(f"{held}.orValue('0')", args[0])
        elif name == "orValue":
            yield f"the default must have the type {of}"
        else:
            yield from write(with_default(args[0], types[0]), args[0])
        return
    match name, args, [type_.name for type_ in types]:
        case ("contains", (_, item), ["net.CIDR", _]):
            of = "CIDR" if types[1].name == "net.CIDR" else "IP"
            yield from write(f"{held}.contains{of}({rest})", call)
        case ("contains", (_, item), ["list" | "map", _]):
            yield from of_in(call, (item, types[1]), (args[0], types[0]))
            yield from write(f"{rest} in {text(args[0])}", call)
        case (_, _, ["Quantity", "string"]):
            yield from write(f"quantity({rest})", args[1])
        case ("double", (amount,), ["Quantity"]):
            yield from write(f"{operand_text(amount)}.asApproximateFloat()", call)
        case ("int" | "uint" as name, (amount,), ["Quantity"]):
            whole = f"{operand_text(amount)}.asInteger()"
            yield from write(whole if name == "int" else f"uint({whole})", call)
        case ("quantity", (Const() as amount,), _):
            yield from write(f"quantity('{text(amount)}')", call)
        case ("format", _, ["timestamp", *_]):
            compared = around[0] if around else None
            if isinstance(compared, Call) and len(compared.args) == 2 and compared.args[0] is call:
                yield from of_clock(compared, (args[0], Type("timestamp")), (compared.args[1], Type("string")))
            yield from write(f"string({text(args[0])})", call, before="a time has no formats: ")
        case ("format", _, ["string", *_]):
            yield from write(f"{held}.format([{rest}])", call)
        case ("math.ceil" | "math.floor" | "math.round" | "math.trunc", (number,), ["int" | "uint"]):
            yield from write(text(number), call, before="an int is whole: ")
            yield from write(f"double({text(number)})", number)
        case ("asInteger" | "asApproximateFloat" | "sign" | "isInteger", _, ["string"]):
            yield from write(f"quantity({text(args[0])}).{name}()", call)
        case ("sort", _, ["list"]):
            key = key_of_items(types[0])
            field = f"x.{key}" if key else "x.metadata.name"
            yield from write(f"{held}.sortBy(x, {field})", call, shown=f"{held}.sortBy(x, ...)")
