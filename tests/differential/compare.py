"""One expression on both sides."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from cel_expr_python import cel
from msgspec import Struct

from differential.data import Facts, some_facts
from differential.grammar import VARIABLES, Grammar, Recipe
from differential.slots import may_share_slots
from differential.table import OUTCOMES
from differential.trouble import limit
from fairlead.cel.checked import Checked, Type, decode
from fairlead.cel.engine_errors import kind_of
from fairlead.cel.environment import PROTECTION, environment
from fairlead.cel.errors import Abort, CelError
from fairlead.cel.lowering.builder import CAUGHT, NotLoweredError
from fairlead.cel.lowering.dynamic import IN_AN_OPTIONAL
from fairlead.cel.lowering.program import Program, translated
from fairlead.cel.values import BoolKey, Duration, Nothing, Some, Timestamp, TypeName, UInt

_TYPES = {"?string": Type("optional_type", (Type("string"),)), "[int]": Type("list", (Type("int"),))}
_NAMES = {"NULL": "null_type", "TIMESTAMP": "google.protobuf.Timestamp", "DURATION": "google.protobuf.Duration"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_EXACTLY = {"timestamp": "string({})", "duration": "string({})", "[timestamp]": "({}).map(t, string(t))"}


@dataclass(frozen=True, slots=True)
class Case:
    """An expression, the policy's variables, and what it is asked about."""

    text: str
    variables: tuple[tuple[str, str], ...]
    facts: tuple[int, ...]
    recipe: Recipe | None = None

    def __str__(self) -> str:
        used = {name: text for name, text in self.variables if f"variables.{name}" in self.text}
        return f"{self.text}   {used or ''}"


def case(random: Random, wish: tuple[Recipe, str] | None = None) -> Case:
    """Some case; a wish is for a root and what shall come of it."""
    chosen = {name: random.choice(texts) for name, (_, texts) in VARIABLES.items()}
    facts = tuple(random.randrange(len(some_facts())) for _ in range(3))
    grammar = Grammar(random, {name: type_ for name, (type_, _) in VARIABLES.items()})
    roll = random.random()
    if roll < 0.015:
        return Case(limit(random), tuple(chosen.items()), facts)
    recipe, outcome = (grammar.recipe(), None) if wish is None else wish
    if roll < 0.2 and wish is None:
        outcome = random.choice(OUTCOMES[1:-1])
    text, type_ = grammar.root(recipe, outcome or None), recipe[2]
    if type_ in _SHOWN_EXACTLY:
        text = _SHOWN_EXACTLY[type_].format(text)
    elif type_[0] == "?":
        text = f"cel.bind(o, {text}, o.hasValue() ? [dyn(o.value())] : [])"
    return Case(text, tuple(chosen.items()), facts, recipe)


@cache
def env() -> cel.Env:
    return environment(PROTECTION, {name: _TYPES.get(type_, Type(type_)) for name, (type_, _) in VARIABLES.items()})


@cache
def activation(index: int) -> cel.Activation:
    return env().Activation(some_facts()[index].for_engine)


@cache
def variable(text: str) -> Checked:
    return decode(env().compile(text).serialize())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, in a form in which equal means the same."""

    value: str
    error: str = ""
    note: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """Of a case: what it is made of, whether it was lowered, and where both sides differ."""

    checked: Checked | None
    outcomes: tuple[Outcome, ...] = ()
    why_not: str = ""
    differences: tuple[str, ...] = ()
    blamed: tuple[str, ...] = ()  # differences that are the engine's, see `slots`


def run(one: Case) -> Result:
    """Compare: hoisted and plain against the engine."""
    texts = dict(one.variables)
    try:
        compiled = env().compile(one.text)
    except Exception as error:  # noqa: BLE001 - the engine's own
        return Result(None, why_not=str(error))
    checked = decode(compiled.serialize())
    program = Program(checked, {name: variable(text) for name, text in texts.items()})
    expanded = compiled
    if "variables." in one.text:
        try:
            expanded = env().compile(_expanded(_expanded(one.text, texts), texts))
        except Exception as error:  # noqa: BLE001 - too deep
            return Result(None, why_not=str(error))
    try:
        program.check()
    except NotLoweredError as error:
        return Result(checked, why_not=str(error) or "?")
    wants, differences = [], []
    for index in one.facts:
        want = on_engine(expanded, index)
        wants.append(want)
        for name, got in (("hoisted", on_lowered(program, index)), ("plain", on_lowered(program, index, plain=True))):
            if not same(want, got):
                differences.append(f"{one} on {index} {name}: engine {want}, lowered {got}")
    if differences and (may_share_slots(decode(expanded.serialize()).root) or IN_AN_OPTIONAL in str(differences)):
        return Result(checked, tuple(wants), blamed=tuple(differences))
    return Result(checked, tuple(wants), differences=tuple(differences))


def _expanded(text: str, texts: Mapping[str, str]) -> str:
    for name, value in texts.items():
        text = text.replace(f"variables.{name}", f"({value})")
    return text


def same(want: Outcome, got: Outcome) -> bool:
    return want == got or ("mixed" in got.value and want.error == got.error)


def on_engine(compiled: cel.Expression, index: int) -> Outcome:
    try:
        value = compiled.eval(activation=activation(index))
    except (RuntimeError, ValueError, MemoryError) as error:
        return Outcome("", f"abort {kind_of(str(error))}")
    if value.type() == cel.Type.ERROR:
        try:
            text = str(value.value())
        except TypeError:
            return Outcome("opaque")
        return Outcome("", str(kind_of(text)))
    return Outcome(_of_engine(value))


def on_lowered(program: Program, index: int, *, plain: bool = False) -> Outcome:
    facts: Facts = some_facts()[index]
    try:
        one = program.plain(facts.of_pod) if plain else program.for_pod(facts.of_pod)
        return Outcome(describe(one(facts.of_node, facts.now)))
    except (*CAUGHT, Abort) as error:
        return error_outcome(error if isinstance(error, Abort) else translated(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours, to be told with its expression
        return Outcome("", f"crash {error!r}")


def error_outcome(error: CelError | Abort) -> Outcome:
    return Outcome("", f"{'abort ' if isinstance(error, Abort) else ''}{error.kind}", error.message)


def _of_engine(value: cel.Value) -> str:
    name = str(value.type().name())
    if name.startswith("kubernetes."):
        return name
    try:
        content = value.value()
    except TypeError:
        return "opaque"
    if name.startswith("LIST"):
        return "[" + ", ".join(_of_engine(item) for item in content) + "]"
    if name.startswith("MAP"):
        return _map((key, _of_engine(item)) for key, item in content.items())
    match name:
        case "BYTES":
            return repr(bytes(content))
        case "UINT":
            return f"{content}u"
        case "TIMESTAMP":
            return f"timestamp {(content - _EPOCH) // timedelta(microseconds=1)}"
        case "DURATION":
            return f"duration {content // timedelta(microseconds=1)}"
        case "TYPE":
            shown = str(content.name())
            return "type " + (shown if "." in shown else _NAMES.get(shown, shown.partition("<")[0].lower()))
    return describe(content)


def describe(value: Any) -> str:
    """A value of ours, so that equal text means the same value of the same type."""
    match value:
        case UInt():
            return f"{int(value)}u"
        case Timestamp():
            return f"timestamp {value // 1000}"
        case Duration():
            return f"duration {abs(value) // 1000 * (1 if value >= 0 else -1)}"
        case bool() | None:
            return str(value)
        case int() | str() | bytes() if value.__class__ in (int, str, bytes):
            return repr(value)
        case TypeName():
            return f"type {value!s}"
        case float():
            sign = "-" if math.copysign(1, value) < 0 else ""
            return f"double {sign}{abs(value)!r}" if value == value else "double nan"
        case list() | tuple():
            return "[" + ", ".join(map(describe, value)) + "]"
        case dict():
            keys = {type(key) for key in value}
            if BoolKey in keys and len(keys) > 1:
                return "mixed"  # the engine's own dict mistakes True for 1
            return _map((key.value if isinstance(key, BoolKey) else key, describe(item)) for key, item in value.items())
        case Some() | Nothing():
            return "opaque"
        case Struct():
            return str(value.cel_type)  # type: ignore[attr-defined]
    return f"{type(value).__name__} {value!r}"


def _map(entries: Iterator[tuple[Any, str]]) -> str:
    shown = {repr(int(key) if isinstance(key, UInt) else key): item for key, item in entries}
    return "{" + ", ".join(f"{key}: {shown[key]}" for key in sorted(shown)) + "}"
