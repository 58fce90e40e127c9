"""Errors of the engine in the words of a person who writes policies, each with a hint where one is known.

The engine says where and what; it does not know which names would be valid, and calls operators `_>=_`. What it says
of types is read from its text, everything else from the tree.

After a syntax error there is no tree: its hints show only what the text itself has at the place.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.hints.engine_messages import (
    LITERAL,
    MACRO_VARIABLE,
    NO_FIELD_IN_HAS,
    NO_FIELDS,
    NO_OVERLOAD,
    RESERVED,
    SYNTAX,
    TOO_DEEP,
    UNDECLARED,
    UNDEFINED_FIELD,
    EngineMessage,
    engine_messages,
    read_types,
    shown,
)
from fairlead.cel.hints.rewrites import write
from fairlead.cel.hints.type_hints import of_call, of_field, of_operator
from fairlead.cel.hints.unknown_names import (
    MACRO_NAMES,
    VARIABLES,
    Names,
    part_of_time,
    undefined_field,
    unknown_function,
    unknown_variable,
)
from fairlead.cel.syntax.ast import Call, Checked, Ident, Node, Select, Type, children, walk
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.source_refs import code
from fairlead.cel.syntax.unparse import operand_text

_SHOWN_AT_MOST: Final = 5
_RESERVED: Final = {
    "namespace": "the pod's namespace is `namespaceObject`",
    "if": "write `condition ? one : other`",
}
# Keys of maps that are written as fields. A key of a label may have dots alone, the name of a resource has not.
_KEY: Final = re.compile(
    r"\b(?:(?:labels|annotations|nodeSelector|matchLabels)\.(?P<label>\w++(?:[-./]++\w++)*+)"
    r"|(?:allocatable|capacity|requests|limits|free|requested|request|data)\.(?P<resource>[\w.]++(?:[-/]++[\w.]++)*+))"
)
_HOLDER: Final = re.compile(r"(?<![\w.\[\]])[\w.\[\]]++$")


def diagnostics(error: str, source: str, tree: Checked | None, names: Names) -> list[Diagnostic]:
    """Return what is wrong with an expression; `tree` is None if it could not be parsed."""
    if TOO_DEEP in error:
        return [Diagnostic(1, 1, "the expression is nested more than 32 levels deep", "split it with variables")]
    found = engine_messages(error, source)
    if not found:
        return [Diagnostic(1, 1, error.splitlines()[0])]
    if syntax := next((one for one in found if one.text.startswith(SYNTAX)), None):
        at, text, hint = of_syntax(syntax.text.removeprefix(SYNTAX), source, syntax.at)
        return [Diagnostic(*place(source, at), text, hint)]
    if tree is None:
        return sorted({Diagnostic(*place(source, one.at), *_of_parser(one.text)) for one in found})[:_SHOWN_AT_MOST]
    return sorted({*_Diagnosis(source, tree, names).of(found)})


def _of_parser(text: str) -> tuple[str, str]:
    if match := RESERVED.match(text):
        return f"`{match[1]}` is a reserved word in CEL", _RESERVED.get(match[1], "")
    if NO_FIELD_IN_HAS.match(text):
        return "has() needs a field, as in has(pod.spec.priority)", "for a map key write `'key' in map`"
    if match := MACRO_VARIABLE.match(text):
        return f"{match[1]}() needs a variable name first", f"write `{match[1]}(x, ...)`"
    if match := LITERAL.match(text):
        return f"the number does not fit into {match[1]}", "an int has 64 bits; write a double as 1e20"
    return text, ""


class _Diagnosis:
    """Messages of the checker about one expression."""

    def __init__(self, source: str, tree: Checked, names: Names) -> None:
        self._source, self._names = source, names
        self._at: dict[int, list[Node]] = {}
        self._parents: dict[int, Node] = {}
        for node in walk(tree.root):
            self._at.setdefault(tree.positions.get(node.id, 0), []).append(node)
            self._parents |= {child.id: node for child in children(node)}

    def of(self, found: list[EngineMessage]) -> Iterator[Diagnostic]:
        keys, rest = self._unquoted_keys(found)
        yield from keys[:_SHOWN_AT_MOST]
        causes = sorted(self._without_follow_ups(rest), key=lambda one: one.at)
        for one in causes[: max(_SHOWN_AT_MOST - len(keys), 0)]:
            at, text, hint = self._worded(one)
            yield Diagnostic(*place(self._source, at), text, hint)

    def _worded(self, one: EngineMessage) -> tuple[int, str, str]:
        if match := UNDECLARED.match(one.text):
            call, root = self._unknown(one)
            if call:
                return one.at - len(call.function), *unknown_function(call, self._names)
            idents = [(at, node) for at, nodes in self._at.items() for node in nodes if _is_named(node, root)]
            at, node = min(idents, key=lambda found: abs(found[0] - one.at), default=(one.at, None))
            at = one.at + 1 if root == "variables" != match[1] else at
            return at, *unknown_variable(match[1], self._parents.get(node.id) if node else None, self._names)
        if match := UNDEFINED_FIELD.match(one.text):
            (message,) = read_types(match[2])
            return max(one.at, self._source.find(match[1], one.at)), *undefined_field(match[1], message.name)
        if match := NO_FIELDS.match(one.text):
            (type_,) = read_types(match[1])
            return one.at + 1, f"{shown(type_)} has no fields", self._of_field(one.at, type_)
        if match := NO_OVERLOAD.match(one.text):
            return self._of_overload(one.at, match[1], match[2])
        return one.at, one.text, ""

    def _of_field(self, at: int, type_: Type) -> str:
        select = next((node for node in self._at.get(at, ()) if isinstance(node, Select)), None)
        if select is None:
            return ""
        if type_.name in ("timestamp", "duration") and (function := part_of_time(select.field)):
            return write(f"{operand_text(select.operand)}.{function}()")
        return of_field(select.operand, select.field, type_)

    def _of_overload(self, at: int, function: str, types_text: str) -> tuple[int, str, str]:
        types = read_types(types_text)
        call = next(
            (node for node in self._at.get(at, ()) if isinstance(node, Call) and node.function == function), None
        )
        args = call.args if call and len(call.args) == len(types) else ()
        given = " and ".join(filter(None, [", ".join(map(shown, types[:-1])), *map(shown, types[-1:])])) or "nothing"
        if function[0] not in "_@!-":
            return at - len(function), f"`{function}` is not defined for {given}", of_call(function, args, types)
        match function:
            case "_[_]":
                fault = f"{shown(types[0])} cannot be indexed by {shown(types[-1])}"
            case "_?_:_":
                fault = f"`?:` needs a bool and two values of the same type, not {given}"
            case "_&&_" | "_||_" | "!_":
                fault = f"`{function.strip('_')}` needs bools, not {given}"
            case _:
                fault = f"`{'in' if function == '@in' else function.strip('_')}` is not defined for {given}"
        return at, fault, of_operator(function, args, types) if args else ""

    def _call(self, at: int, function: str) -> Call | None:
        calls = (node for node in self._at.get(at, ()) if isinstance(node, Call))
        return next((node for node in calls if node.function == function), None)

    def _unknown(self, one: EngineMessage) -> tuple[Call | None, str]:
        """Return the call if a message is of an unknown function, the name if it is of an unknown variable."""
        if not (match := UNDECLARED.match(one.text)):
            return None, ""
        call = self._call(one.at, match[1])
        return call, "" if call else match[1].partition(".")[0]

    def _without_follow_ups(self, found: list[EngineMessage]) -> list[EngineMessage]:
        """Leave out what only follows from an unknown call: what it would bind, its namespace, calls of its result."""
        unknown = [(one, *self._unknown(one)) for one in found]
        dropped = set[EngineMessage]()
        for one, call, _ in unknown:
            if call is None:
                continue
            target = call.args[0] if call.member else None
            inner = {node.id for node in walk(target)} if target else set[int]()
            bound = {node.name for node in call.args if isinstance(node, Ident)}
            for other, other_call, root in unknown:
                if root and (root in bound or call.function in MACRO_NAMES) and root not in VARIABLES:
                    dropped.add(other)
                elif (other_call or root in VARIABLES) and inner.intersection(self._ids_at(other.at)):
                    dropped.add(one)
        return [one for one in found if one not in dropped]

    def _ids_at(self, at: int) -> Iterator[int]:
        return (node.id for node in self._at.get(at, ()))

    def _unquoted_keys(self, found: list[EngineMessage]) -> tuple[list[Diagnostic], list[EngineMessage]]:
        """Return keys that are written as fields, and the messages about something else."""
        keys = list[Diagnostic]()
        for start, key in _written_as_fields(code(self._source)):
            inside = [one for one in found if start - 1 <= one.at <= start + len(key)]
            if any(not NO_OVERLOAD.match(one.text) or "_-_" in one.text for one in inside):
                holder = _HOLDER.search(self._source[: start - 1])
                fault = f"a key with `{next(filter('-./'.__contains__, key))}` cannot be written as a field"
                hint = f"write `{holder[0] if holder else '...'}['{key}']`"
                keys.append(Diagnostic(*place(self._source, start), fault, hint))
                found = [one for one in found if one not in inside]
        return keys, found


def _written_as_fields(blanked: str) -> Iterator[tuple[int, str]]:
    """Yield keys with a dash, a slash or a dot that are written as fields, with their offsets."""
    for found in _KEY.finditer(blanked):
        group = found.lastgroup or ""
        key, separators = found[group], "-./" if group == "label" else "-/"
        if blanked.startswith("(", found.end()):  # the last name is a function
            key = key[: max(map(key.rfind, separators))].rstrip(separators)
        if any(map(key.count, separators)):
            yield found.start(group), key


def _is_named(node: Node, name: str) -> bool:
    return isinstance(node, Ident) and node.name.removeprefix(".") == name


_TOKEN: Final = re.compile(r"\w+|&&|\|\||[<>=!]=|=>|.", re.DOTALL)
_EXPECTED: Final = re.compile(r"(?:expecting|missing) '([^']+)'")
_OPERATORS: Final = {
    **dict.fromkeys(("and", "AND", "&"), "&&"),
    **dict.fromkeys(("or", "OR", "|"), "||"),
    **dict.fromkeys(("not", "NOT"), "!"),
    **dict.fromkeys(("=", "==="), "=="),
    **dict.fromkeys(("!==", "<>"), "!="),
    "=<": "<=",
    "?.": ".?",
    "??": ".orValue(...)",
    "=~": ".matches('...')",
    "not in": "!(... in ...)",
    "if": "condition ? one : other",
}
# Nothing here fits an expression that CEL accepts.
_SLIP: Final = re.compile(
    r"(?P<word>(?<![.\w])(?:not\s+in|and|AND|or|OR|not|NOT|if)(?!\w))"
    r"|(?P<sign>===|!==|<>|=<|=~|\?\?|(?<=[\w\])])\?\.|(?<![=!<>])=(?![=>])|(?<!&)&(?!&)|(?<!\|)\|(?!\|))"
    r"|(?P<template>\{\{|\$[{(]?)"
    r"|(?P<character>[`\u2018-\u201e\xab\xbb\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff\u2010-\u2015\u2212])"
    r"|(?P<dot>(?<![\w.])\d++\.(?![\d.]))"
    r"|(?P<number>(?<![\w.])\d++(?:\.\d++)?(?:[KMGTPE]i?B?|k|m|s|ms|h)\b)"
)
_ESCAPE: Final = re.compile(r"(['\"])(?:(?!\1)[^\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.)")


def of_syntax(message: str, source: str, at: int) -> tuple[int, str, str]:
    """Return the offset, what is wrong, and what would be right."""
    rest = source[at:]
    if rest[:1] in ("'", '"') and message.startswith("token recognition error"):
        if escape := _ESCAPE.match(rest):
            return (
                at,
                f"syntax error: unknown escape `{escape[2]}`",
                f"put `r` before the quote, or write `\\{escape[2]}`",
            )
        return at, "syntax error: the string does not end", f"close it with `{rest[0]}`"
    slips = [(max(one.start() - at, at - one.end(), 0), one) for one in _SLIP.finditer(code(source))]
    slips = [(far, one) for far, one in slips if one.lastgroup != "word" or far <= 1]
    if slips:
        _, near = min(slips, key=lambda one: (one[1].lastgroup != "template", one[0]))
        return _of_slip(near, source)
    expected = _EXPECTED.search(message)
    hint = f"expected `{expected[1]}`" if expected else ""
    if rest.startswith(","):
        hint = "write a list as `['a', 'b']`"
    if not rest.strip():
        return at, "syntax error: unexpected end of the expression", hint
    return at, f"syntax error: unexpected `{_TOKEN.match(rest)[0]}`", hint  # type: ignore[index]


def _of_slip(slip: re.Match[str], source: str) -> tuple[int, str, str]:
    at, found = slip.start(), " ".join(slip[0].split())
    match slip.lastgroup:
        case "template":
            return at, f"syntax error: unexpected `{found}`", "render templates before the policy is used"
        case "character":
            return (
                at,
                f"syntax error: unexpected {slip[0]!r} ({unicodedata.name(slip[0])})",
                "use plain ASCII quotes, spaces and signs",
            )
        case "dot":
            return at, f"syntax error: `{found}` is not a number", f"write `{found}0`"
        case "number":
            return at, "syntax error: numbers have no units", _amount(found, source[:at])
    return at, f"syntax error: CEL has no `{found}`", f"write `{_OPERATORS[found]}`"


def _amount(found: str, before: str) -> str:
    if found.endswith(("s", "h")) or (found.endswith("m") and re.search(r"\bnow\b|Timestamp\b|duration", before)):
        return f"write `duration('{found}')`"
    quantity = found.removesuffix("B")
    number = to_float(quantity)
    return f"write `{number}`, or `quantity('{quantity}')` beside a quantity" if number is not None else ""
