"""The macros of the language, written by the grammar."""

from random import Random
from typing import TYPE_CHECKING

from differential.literals import literal
from differential.shapes import KEYS, ORDERED

if TYPE_CHECKING:
    from differential.grammar import Grammar

NAMES = ("x", "y", "i", "v", "node", "now")
OF_OPTIONALS = ("optMap", "optFlatMap")
OF_ONE = ("all", "exists", "exists_one")
OF_TWO = ("all of two", "exists of two", "existsOne")
OF_LISTS = ("map", "map where", "filter", "transformList", "transformList where", "sortBy")
MACROS = ("bind", *OF_OPTIONALS, *OF_ONE, *OF_TWO, *OF_LISTS)


def gives(macro: str, type_: str) -> bool:
    """Whether there is a macro of this name that makes a value of the type."""
    if macro in OF_OPTIONALS:
        return type_[0] == "?"
    if macro in OF_LISTS:
        return type_[0] == "["
    return macro == "bind" or type_ == "bool"


def some(random: Random, type_: str) -> str | None:
    """A macro that makes a value of the type, if chance wants one."""
    if random.random() < 0.15:
        return "bind"
    found = [macro for macro in MACROS[1:] if gives(macro, type_)]
    return random.choice(found) if found else None


def write(grammar: "Grammar", macro: str, type_: str, depth: int) -> str:
    """An expression of a type: this macro, of whatever."""
    name, second = grammar.random.sample(NAMES, 2)
    if macro == "bind":
        bound = grammar.some_type(1)
        value = grammar.expression(bound, depth - 1)
        return f"cel.bind({name}, {value}, {grammar.under({name: bound}, type_, depth)})"
    if macro in OF_OPTIONALS:
        held = grammar.some_type(1).lstrip("?")
        start = grammar.member(f"?{held}", depth - 1)
        made = type_[1:] if macro == "optMap" else type_
        return f"{start}.{macro}({name}, {grammar.under({name: held}, made, depth)})"
    if macro in ("filter", "sortBy"):
        test = "bool" if macro == "filter" else grammar.random.choice(ORDERED)
        text = grammar.under({name: type_[1:-1]}, test, depth)
        return f"{grammar.member(type_, depth - 1)}.{macro}({name}, {text})"
    source, one, two = _range(grammar, grammar.some_type(1), depth)
    if macro in OF_ONE:
        return f"{source}.{macro}({name}, {grammar.under({name: one}, 'bool', depth)})"
    both = {name: two[0], second: two[1]}
    if macro in OF_TWO:
        test = grammar.under(both, "bool", depth)
        return f"{source}.{macro.removesuffix(' of two')}({name}, {second}, {test})"
    names, inside = (name, {name: one}) if macro.startswith("map") else (f"{name}, {second}", both)
    test = f", {grammar.under(inside, 'bool', depth - 1)}" if macro.endswith(" where") else ""
    made = grammar.under(inside, type_[1:-1], depth)
    return f"{source}.{macro.removesuffix(' where')}({names}{test}, {made})"


def _range(grammar: "Grammar", item: str, depth: int) -> tuple[str, str, tuple[str, str]]:
    """What a macro goes through, and the types of its variables; maps have one entry, for their order."""
    roll = grammar.random.random()
    if roll < 0.2:
        return "pods", "PlacedPod", ("int", "PlacedPod")
    if roll < 0.7:
        return grammar.member(f"[{item}]", depth - 1), item, ("int", item)
    key = grammar.random.choice(KEYS)
    text = f"{{{literal(grammar.random, key)}: {grammar.expression(item, depth - 1)}}}"
    return text, key, (key, item)
