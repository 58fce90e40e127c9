"""Hints for keys and fields: of lists, of objects that are read like maps, and of values that have none."""

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.cel.hints.rewrites import Hints, Rewriting, exists, key_of_items, write
from fairlead.cel.syntax.ast import Call, Const, Ident, Node, Select, Type, walk
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import messages

SIZES: Final = ("length", "size", "len", "count")
_ADMISSION: Final = ("operation", "userInfo", "object", "oldObject", "namespace", "kind", "resource", "dryRun")


def of_index(part: Node, node: Node, of: Type, key: Node, by: Type, around: Sequence[Node] = ()) -> Hints:
    """Yield what to write for `held[key]`, or for a field of a list."""
    match of.name, by.name, key:
        case ("list", "string", _):
            if of.params[0].name == "string":
                yield from write(f"{text(key)} in {text(node)}", part)
            elif named := key_of_items(of):
                is_condition = "status" in messages().get(of.params[0].name, ())
                test = f"x.{named} == {text(key)}" + (" && x.status == 'True'" if is_condition else "")
                shown = exists(node, test if is_condition else f"{test} ...")
                yield from write(exists(node, test), part, shown=shown)
                yield f"write `{shown}`"
        case ("map", "int", _):
            yield from write(f"{operand_text(node)}['{text(key)}']", part)
        case ("string", "int", _):
            yield from write(f"{operand_text(node)}.charAt({text(key)})", part)
        case (name, "string", Const(value=str(field))) if field in messages().get(name, ()):
            yield from _of_chain(part, operand_text(node), name, around)
            yield from write(f"{operand_text(node)}.{field}", part)


def _of_chain(part: Node, chain: str, message: str, around: Sequence[Node]) -> Iterator[Rewriting]:
    """Yield fields in place of all keys, for an object that is read like a map: `pod['metadata']['name']`."""
    whole, type_ = part, message
    for node in (part, *around):
        match node:
            case Call(function="_[_]", args=(_, Const(value=str(field)))) if field in messages().get(type_, ()):
                whole, chain, type_ = node, f"{chain}.{field}", messages()[type_][field]
            case Select(field=field) if field in messages().get(type_, ()):
                whole, chain, type_ = node, f"{chain}.{field}", messages()[type_][field]
            case _:
                break
    if whole is not part:
        yield from write(chain, whole)


def of_field(select: Select, type_: Type, around: Sequence[Node]) -> Hints:
    """Yield hints for a field of a value that has none."""
    held, field = select.operand, select.field
    if is_asking := asks_for_admission([held]):
        yield is_asking
        return
    if field in SIZES:
        yield from write(f"{operand_text(held)}.size()", select)
    if type_.name != "list":
        return
    compared = around[0] if around and isinstance(around[0], Call) else None
    if field in messages().get(type_.params[0].name, ()):
        shown = exists(held, f"x.{field} ...")
        if compared is not None and compared.function in ("_==_", "_!=_", "@in") and compared.args[0] is select:
            sign = "in" if compared.function == "@in" else compared.function.strip("_")
            yield from write(exists(held, f"x.{field} {sign} {text(compared.args[1])}"), compared, shown=shown)
        yield f"write `{shown}`"
        return
    if compared is not None and compared.function in ("_==_", "_!=_") and compared.args[0] is select:
        yield from of_index(compared, held, type_, Const(0, field), Type("string"))
    yield from of_index(select, held, type_, Const(0, field), Type("string"))


def asks_for_admission(args: Sequence[Node]) -> str:
    """Return advice for a part that reads the request of an admission policy; "" if there is none."""
    for node in (node for arg in args for node in walk(arg)):
        match node:
            case Select(operand=Ident(name="request"), field=field) if field in _ADMISSION:
                return "`request` is what the pod requests (`request['cpu']`); rules do not see the admission request"
    return ""
