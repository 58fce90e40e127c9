"""What to begin an expression with, and which beginnings have which kinds of nodes in them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from random import Random

from differential import macros
from differential.grammar import Grammar
from differential.literals import SCALARS, literal
from differential.shapes import DOMAINS, PATHS, fields_of, fill, optional, productions
from differential.table import Row, rows
from differential.world import env
from fairlead.cel.syntax.ast_decode import decode

# A type of every form; what a star and a message stand for is left to chance.
_FORMS = (*SCALARS, "[*]", "{string:*}", "?*", "Message")
_SAMPLES = 3
_SHOWN_EXACTLY = {"timestamp": "string({})", "duration": "string({})", "[timestamp]": "({}).map(t, string(t))"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A line of the table, a macro, a leaf or anything; and the form of a type."""

    make: int | str
    form: str = ""


@cache
def recipes() -> Mapping[int | str, Sequence[Recipe]]:
    """All of them, by what they make."""
    return {make: tuple(found) for make, found in groupby(_recipes(), key=lambda recipe: recipe.make)}


def _recipes() -> Iterator[Recipe]:
    yield Recipe("has")
    yield from (Recipe("literal", form) for form in SCALARS)
    yield from (Recipe("field", form) for form in _FORMS if fields_of(form))
    yield from (Recipe(make, form) for make in ("anything", "name") for form in _FORMS)
    yield from (Recipe(macro, form) for macro in macros.MACROS for form in _FORMS if macros.gives(macro, form))
    for at in range(len(productions())):
        letter = _letter(at)
        forms = _FORMS if letter == "T" else sorted(set(DOMAINS[letter])) if letter else ("",)
        yield from (Recipe(at, form) for form in forms)


def some_recipe(random: Random) -> Recipe:
    """Mostly a line of the table, each as likely as the others."""
    roll = random.random()
    if roll < 0.1:
        return Recipe("has")
    makes = [make for make in recipes() if isinstance(make, int) is (roll < 0.75)]
    return random.choice(recipes()[random.choice(makes)])


@cache
def _letter(at: int) -> str:
    """The letter of a line that is chosen beforehand: the one that matters most."""
    line = productions()[at]
    found = re.findall(r"\b[TKNO]\b", " ".join((line.result, *line.takes)))
    return next((letter for letter in "TONK" if letter in found), "")


def write(grammar: Grammar, recipe: Recipe, depth: int) -> tuple[str, str]:
    """An expression as the recipe has it, and its type."""
    type_ = _settled(grammar, recipe.form)
    if isinstance(recipe.make, int):
        line = productions()[recipe.make]
        letter = _letter(recipe.make)
        known = grammar.complete(line, {letter: type_} if letter else {})
        return grammar.produce(line, known, depth), fill(line.result, known)
    if recipe.make == "has":
        return grammar.presence(depth), "bool"
    if recipe.make == "literal":
        return literal(grammar.random, type_), type_
    if recipe.make == "field":
        message, field = grammar.random.choice(fields_of(type_))
        return f"{grammar.inner(message, depth - 1)}.{field}", type_
    if recipe.make == "anything":
        return grammar.inner(type_, depth), type_
    if recipe.make == "name":
        text = grammar.expression(type_, depth - 1)
        return f"[{text}].map(x, [x])[0][0]" if grammar.random.random() < 0.5 else f"cel.bind(x, {text}, x)", type_
    return macros.write(grammar, recipe.make, type_, depth), type_


def _settled(grammar: Grammar, form: str) -> str:
    if form == "Message":
        return grammar.random.choice(tuple(PATHS))
    if form == "?*":
        return optional(grammar.some_type(1))
    return form.replace("*", grammar.some_type(1)) if "*" in form else form


def shown(text: str, type_: str) -> str:
    """An expression whose value both sides show in full."""
    if type_ in _SHOWN_EXACTLY:
        return _SHOWN_EXACTLY[type_].format(text)
    return f"cel.bind(o, {text}, o.hasValue() ? [o.value()] : [])" if type_[0] == "?" else text


@cache
def makers() -> Mapping[Row, Sequence[Recipe]]:
    """The recipes that are most likely to make a kind of node of a type: those that did most often of a few times."""
    made: dict[Row, Counter[Recipe]] = defaultdict(Counter)
    for recipe in _recipes():
        for at in range(_SAMPLES):
            grammar = Grammar(Random(f"{recipe}/{at}"), calm=True)
            try:
                compiled = env().compile(shown(*write(grammar, recipe, 2)))
            except Exception:  # noqa: BLE001, S112 - the engine's own, of what its checker refuses
                continue
            for row in rows(decode(compiled.serialize())):
                made[row][recipe] += 1
    return {row: [one for one in made[row] if made[row][one] == max(made[row].values())] for row in sorted(made)}
