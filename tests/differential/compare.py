"""One expression on both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from cel_expr_python import cel

from differential.data import some_facts
from differential.grammar import Grammar
from differential.outcomes import Outcome, on_engine, on_lowered, same
from differential.recipes import Recipe, shown, some_recipe, write
from differential.slots import apart
from differential.table import OUTCOMES
from differential.trouble import limit, raising
from differential.world import VARIABLES, env, variable
from fairlead.cel.checked import Checked, decode
from fairlead.cel.lowering.builder import NotLoweredError
from fairlead.cel.lowering.dynamic import IN_AN_OPTIONAL
from fairlead.cel.lowering.program import Program


@dataclass(frozen=True, slots=True)
class Case:
    """An expression, the policy's variables, and what it is asked about."""

    text: str
    variables: tuple[tuple[str, str], ...]
    facts: tuple[int, ...]

    def __str__(self) -> str:
        used = {name: text for name, text in self.variables if f"variables.{name}" in self.text}
        return f"{self.text}   {used or ''}"


@dataclass(frozen=True, slots=True)
class Wish:
    """For an expression that begins so and ends so."""

    recipes: tuple[Recipe, ...]
    outcome: str


def case(random: Random, wish: Wish | None = None) -> Case:
    """Some case, or one that a wish is for."""
    chosen = {name: random.choice(texts) for name, (_, texts) in VARIABLES.items()}
    facts = tuple(random.randrange(len(some_facts())) for _ in range(3))
    return Case(_text(random, wish), tuple(chosen.items()), facts)


def _text(random: Random, wish: Wish | None) -> str:
    roll = random.random()
    if wish is None and roll < 0.03:
        return limit(random)
    grammar = Grammar(random)
    if wish is None:
        outcome = random.choice(OUTCOMES[1:-1]) if roll < 0.22 else None
        return shown(*_ending(grammar, outcome, *write(grammar, some_recipe(random), 3)))
    grammar.calm, grammar.budget = True, 14
    if wish.outcome and roll < 0.6:
        grammar.planted = wish.outcome
    if len(wish.recipes) == 1:
        text, type_ = write(grammar, wish.recipes[0], 3)
    else:
        text, type_ = _together(random, [shown(*write(grammar, recipe, 2)) for recipe in wish.recipes])
    planted = wish.outcome and roll < 0.6 and grammar.planted is None
    return shown(*_ending(grammar, None if planted else wish.outcome or None, text, type_))


def _together(random: Random, texts: Sequence[str]) -> tuple[str, str]:
    first, *others = texts
    rest = ", ".join(f"dyn({text})" for text in others)
    return random.choice(
        (
            (f"[dyn({first}), {rest}]", "[dyn]"),
            (f"{{'k': dyn({first}), 'l': [{rest}]}}", "{string:dyn}"),
            (f"cel.bind(z, {first}, [{rest}, dyn(z)])", "[dyn]"),
            (f"[{first}].map(z, [{rest}, dyn(z)])", "[[dyn]]"),
        )
    )


def _ending(grammar: Grammar, outcome: str | None, text: str, type_: str) -> tuple[str, str]:
    """The same, with something before it or after it that ends as wanted."""
    if outcome is None:
        return text, type_
    test = raising(grammar.random, outcome)
    if grammar.random.random() < 0.3:
        return f"[{text}][({test}) ? 0 : 0]", type_
    return f"({test}) ? ({text}) : {grammar.leaf(type_)}", type_


@dataclass(frozen=True, slots=True)
class Result:
    """Of a case: what it is made of, whether it was lowered, and where both sides differ."""

    checked: Checked | None
    outcomes: tuple[Outcome, ...] = ()
    why_not: str = ""
    differences: tuple[str, ...] = ()
    known: tuple[str, ...] = ()  # why there are others, that are not counted as differences


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
    wants: list[Outcome] = []
    differences, known = [], []
    for index in one.facts:
        want = on_engine(expanded, index)
        wants.append(want)
        for name, got in (("hoisted", on_lowered(program, index)), ("plain", on_lowered(program, index, plain=True))):
            if same(want, got):
                continue
            if reason := _reason(expanded, index, want, got):
                known.append(reason)
            else:
                differences.append(f"{one} on {index} {name}: engine {want}, lowered {got}")
    return Result(checked, tuple(wants), differences=tuple(differences), known=tuple(known))


def _reason(compiled: cel.Expression, index: int, want: Outcome, got: Outcome) -> str:
    """Why both sides differ, if it is no fault of ours."""
    if IN_AN_OPTIONAL in got.note:
        return "the engine takes the error of a bad index into an optional for a value"
    if not want.error and _without_sign(want.value) == _without_sign(got.value):
        return "two NaNs met, and the processor chose which one it kept"
    if same(on_engine(env().deserialize(apart(compiled.serialize())), index), got):
        return "slots: the engine says the same once its variables do not share them"
    return ""


def _without_sign(value: str) -> str:
    return value.replace("-nan", "nan")


def _expanded(text: str, texts: Mapping[str, str]) -> str:
    for name, value in texts.items():
        text = text.replace(f"variables.{name}", f"({value})")
    return text
