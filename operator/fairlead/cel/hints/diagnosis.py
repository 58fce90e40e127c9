"""Errors of the engine in the words of a person who writes policies, each with a hint where one is known.

The engine says where and what; it does not know which names would be valid, and calls operators `_>=_`. What it says
of types is read from its text, everything else from the tree. `verification` keeps the hints that help.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fairlead.cel.hints.bare_words import unquoted_keys, unquoted_word
from fairlead.cel.hints.calls import of_call
from fairlead.cel.hints.engine_messages import (
    NO_FIELDS,
    NO_OVERLOAD,
    SYNTAX,
    TOO_DEEP,
    UNDECLARED,
    UNDEFINED_FIELD,
    EngineMessage,
    engine_messages,
    read_types,
    show_type,
)
from fairlead.cel.hints.index_hints import of_field
from fairlead.cel.hints.rewrites import Hints, write
from fairlead.cel.hints.syntax_hints import of_parser, of_syntax
from fairlead.cel.hints.type_hints import of_operator
from fairlead.cel.hints.unknown_names import (
    MACRO_NAMES,
    VARIABLES,
    KnownNames,
    part_of_time,
    undefined_field,
    unknown_function,
    unknown_variable,
)
from fairlead.cel.hints.verification import Remaining, Verifier
from fairlead.cel.syntax.ast import (
    Call,
    Checked,
    Comprehension,
    Const,
    Ident,
    Node,
    Select,
    Type,
    children,
    walk,
)
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cooperative import Steps

_SHOWN_AT_MOST: Final = 5


def diagnostics_steps(
    error: str, source: str, tree: Checked | None, names: KnownNames, remaining: Callable[[str], Steps[Remaining]]
) -> Steps[list[Diagnostic]]:
    """Return what is wrong with an expression, with pauses; `tree` is None if it could not be parsed.

    `remaining` returns the faults of an expression: hints are offered only if they leave fewer.
    """
    if TOO_DEEP in error:
        return [Diagnostic(1, 1, "the expression is nested more than 32 levels deep", "split it with variables")]
    found = engine_messages(error, source)
    if not found:
        return [Diagnostic(1, 1, error.splitlines()[0])]
    yield
    verifier = Verifier(source, tree, faults_of(found, source, tree), remaining)
    yield
    if (bare := unquoted_word(source, found)) is not None:
        return [(yield from _diagnosed(verifier, *bare))]
    if syntax := next((one for one in found if one.text.startswith(SYNTAX)), None):
        return [(yield from _diagnosed(verifier, *of_syntax(syntax.text.removeprefix(SYNTAX), source, syntax.at)))]
    made = set[Diagnostic]()
    if tree is None:
        for said in found:
            made.add((yield from _diagnosed(verifier, said.at, *of_parser(said.text, source, said.at))))
        return sorted(made)[:_SHOWN_AT_MOST]
    for one in _Diagnosis(source, tree, names).of(found):
        made.add((yield from _diagnosed(verifier, *one)))
    return sorted(made)


def _diagnosed(verifier: Verifier, at: int, fault: str, hints: Hints) -> Steps[Diagnostic]:
    hint, rewritten = yield from verifier.chosen(hints)
    return Diagnostic(*place(verifier.source, at), fault, hint, rewritten)


def faults(error: str, source: str, tree: Checked | None) -> Remaining:
    """Return how many faults an expression has that the engine rejects."""
    return faults_of(engine_messages(error, source), source, tree)


def faults_of(messages: list[EngineMessage], source: str, tree: Checked | None) -> Remaining:
    """Return how many faults the engine's messages are about."""
    if syntax := next((one for one in messages if one.text.startswith(SYNTAX)), None):
        return Remaining(len(messages), syntax.at)
    if tree is None:
        return Remaining(max(len(messages), 1), 0)
    return _Diagnosis(source, tree, None).remaining(messages)


class _Diagnosis:
    """Messages of the checker about one expression."""

    def __init__(self, source: str, tree: Checked, names: KnownNames | None) -> None:
        self._source, self._names = source, names
        self._at: dict[int, list[Node]] = {}
        self._parents: dict[int, Node] = {}
        self._idents: dict[str, list[tuple[int, Node]]] = {}
        for node in walk(tree.root):
            at = tree.positions.get(node.id, 0)
            self._at.setdefault(at, []).append(node)
            if isinstance(node, Ident):
                self._idents.setdefault(node.name.removeprefix("."), []).append((at, node))
            self._parents |= {child.id: node for child in children(node)}

    def of(self, messages: list[EngineMessage]) -> Iterator[tuple[int, str, Hints]]:
        """Yield what is wrong: the place, the fault and hints."""
        keys, rest = unquoted_keys(self._source, messages)
        yield from keys[:_SHOWN_AT_MOST]
        causes = sorted(self._without_follow_ups(rest), key=lambda one: one.at)
        for one in causes[: max(_SHOWN_AT_MOST - len(keys), 0)]:
            yield self._worded(one)

    def remaining(self, messages: list[EngineMessage]) -> Remaining:
        """Return how many faults there are, without those that follow from others, and what they are about."""
        keys, rest = unquoted_keys(self._source, messages)
        causes = self._without_follow_ups(rest)
        faulty = filter(None, map(self._faulty, causes))
        return Remaining(len(keys) + len(causes), texts=tuple(map(text, faulty)))

    def _worded(self, original: EngineMessage) -> tuple[int, str, Hints]:
        names = self._names
        if names is None:
            raise ValueError("no names")
        if match := UNDECLARED.match(original.text):
            call, root = self._unknown(original)
            if call:
                return original.at - len(call.function), *unknown_function(call, names)
            at, node = self._ident(original, root)
            at = original.at + 1 if root == "variables" != match[1] else at
            return at, *unknown_variable(match[1], node, self._around(node), names)
        if match := UNDEFINED_FIELD.match(original.text):
            (message,) = read_types(match[2])
            at = max(original.at, self._source.find(match[1], original.at))
            return at, *undefined_field(match[1], message.name, self._select(original.at, match[1]))
        if match := NO_FIELDS.match(original.text):
            (type_,) = read_types(match[1])
            return original.at + 1, f"{show_type(type_)} has no fields", self._of_field(original.at, type_)
        if match := NO_OVERLOAD.match(original.text):
            return self._of_overload(original.at, match[1], match[2])
        return original.at, original.text, iter(())

    def _ident(self, message: EngineMessage, root: str) -> tuple[int, Node | None]:
        idents = self._idents.get(root, ())
        return min(idents, key=lambda found: abs(found[0] - message.at), default=(message.at, None))

    def _select(self, at: int, field: str) -> Select | None:
        selects = (node for node in self._at.get(at, ()) if isinstance(node, Select))
        return next((node for node in selects if node.field == field), None)

    def _around(self, node: Node | None) -> Sequence[Node]:
        """Return the parts that a part is in, the innermost first."""
        found = list[Node]()
        while node is not None and (node := self._parents.get(node.id)) is not None:
            found.append(node)
        return found

    def _of_field(self, at: int, type_: Type) -> Hints:
        select = next((node for node in self._at.get(at, ()) if isinstance(node, Select)), None)
        if select is None:
            return
        if type_.name in ("timestamp", "duration") and (function := part_of_time(select.field)):
            yield from write(f"{operand_text(select.operand)}.{function}()", select)
        else:
            yield from of_field(select, type_, self._around(select))

    def _of_overload(self, at: int, function: str, types_text: str) -> tuple[int, str, Hints]:
        types = read_types(types_text)
        call = self._call(at, function)
        if call is not None and len(call.args) != len(types):
            call = None
        around = self._around(call)
        given = (
            " and ".join(filter(None, [", ".join(map(show_type, types[:-1])), *map(show_type, types[-1:])]))
            or "nothing"
        )
        if function[0] not in "_@!-":
            hints = of_call(call, types, around) if call is not None else iter(())
            return at - len(function), f"`{function}` is not defined for {given}", hints
        match function:
            case "_[_]":
                fault = f"{show_type(types[0])} cannot be indexed by {show_type(types[-1])}"
            case "_?_:_":
                fault = f"`?:` needs a bool and two values of the same type, not {given}"
            case "_&&_" | "_||_" | "!_":
                fault = f"`{function.strip('_')}` needs bools, not {given}"
            case _:
                fault = f"`{'in' if function == '@in' else function.strip('_')}` is not defined for {given}"
        return at, fault, of_operator(call, types, around) if call is not None else iter(())

    def _call(self, at: int, function: str) -> Call | None:
        calls = [node for node in self._at.get(at, ()) if isinstance(node, Call)]
        if found := next((node for node in calls if node.function == function), None):
            return found
        namespace, _, name = function.rpartition(".")
        for node in calls:  # `math.ceil(1)` is a method of `math` to the parser
            if namespace and node.function == name and node.member and _is_named(node.args[0], namespace):
                return Call(node.id, function, node.args[1:])
        return None

    def _unknown(self, message: EngineMessage) -> tuple[Call | None, str]:
        """Return the call if a message is of an unknown function, the name if it is of an unknown variable."""
        if not (match := UNDECLARED.match(message.text)):
            return None, ""
        call = self._call(message.at, match[1])
        return call, "" if call else match[1].partition(".")[0]

    def _without_follow_ups(self, messages: list[EngineMessage]) -> list[EngineMessage]:
        """Leave out what only follows from another error.

        Of an unknown call that is what it would bind, its namespace, and calls of its result. The type of what a faulty
        part is in is guessed by the engine, so what is said of that type says nothing.
        """
        unknown = [(one, *self._unknown(one)) for one in messages]
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
        faulty = {one: node for one in messages if one not in dropped and (node := self._faulty(one)) is not None}
        ids = {node.id for node in faulty.values()}
        dropped |= {one for one, node in faulty.items() if any(_is_guessed(part, ids) for part in _deciding(node))}
        return [one for one in messages if one not in dropped]

    def _faulty(self, message: EngineMessage) -> Node | None:
        """Return the part that a message is about."""
        if match := NO_OVERLOAD.match(message.text):
            return self._call(message.at, match[1])
        if match := UNDEFINED_FIELD.match(message.text):
            return self._select(message.at, match[1])
        if NO_FIELDS.match(message.text):
            return next((node for node in self._at.get(message.at, ()) if isinstance(node, Select)), None)
        call, root = self._unknown(message)
        return call or (self._ident(message, root)[1] if root else None)

    def _ids_at(self, at: int) -> Iterator[int]:
        return (node.id for node in self._at.get(at, ()))


_FIXED: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "_&&_", "_||_", "!_", "size"})
"""Calls whose result has one type, whatever they are called with."""


def _deciding(node: Node) -> Sequence[Node]:
    """Return the parts of a faulty part whose types can be what is wrong."""
    match node:
        case Call(function="_&&_" | "_||_" | "!_", args=args):
            return [part for part in args if not (isinstance(part, Call) and part.function in _FIXED)]
    return children(node)


def _is_guessed(node: Node, faulty: set[int]) -> bool:
    """Report whether the engine knows the type of a part only by guessing, because a part of it is faulty."""
    match node:
        case Call(function=function) if function in _FIXED:
            return False
        case Comprehension(init=Const()):
            return False
    return node.id in faulty or any(_is_guessed(part, faulty) for part in children(node))


def _is_named(node: Node, name: str) -> bool:
    return isinstance(node, Ident) and node.name.removeprefix(".") == name
