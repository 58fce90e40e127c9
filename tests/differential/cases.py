"""Expressions with what they are asked about: by chance, or as somebody wishes."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from differential.data import some_facts
from differential.grammar import Grammar
from differential.recipes import Recipe, shown, some_recipe, write
from differential.table import OK, OUTCOMES
from differential.trouble import limit, raising
from differential.world import VARIABLES


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
    if wish is not None:
        return _wished(random, wish)
    roll = random.random()
    if roll < 0.03:
        return limit(random)
    grammar = Grammar(random)
    made = write(grammar, some_recipe(random), 3)
    return shown(*(_ending(grammar, random.choice(OUTCOMES[1:-1]), *made) if roll < 0.22 else made))


def _wished(random: Random, wish: Wish) -> str:
    """What is to raise stands within the expression, or else before or after it."""
    grammar = Grammar(random, calm=True)
    within = wish.outcome != OK and random.random() < 0.6
    if within:
        grammar.planted = wish.outcome
    if len(wish.recipes) == 1:
        made = write(grammar, wish.recipes[0], 3)
    else:
        made = _together(random, [shown(*write(grammar, recipe, 2)) for recipe in wish.recipes])
    if wish.outcome == OK or (within and grammar.planted is None):
        return shown(*made)
    return shown(*_ending(grammar, wish.outcome, *made))


def _together(random: Random, texts: Sequence[str]) -> tuple[str, str]:
    """The first, among others that are evaluated too."""
    first, *others = texts
    rest = " + ".join(f"[{text}].size()" for text in others)
    return random.choice(
        (
            (f"{rest} > 0 ? [{first}] : []", "[*]"),
            (f"{{'k': [{first}]}}[{rest} > 0 ? 'k' : 'l']", "[*]"),
            (f"cel.bind(z, {first}, {rest} > 0 ? [z] : [z, z])", "[*]"),
            (f"[{first}].map(z, {rest} > 0, [z])", "[[*]]"),
        )
    )


def _ending(grammar: Grammar, outcome: str, text: str, type_: str) -> tuple[str, str]:
    """The same, with something before it or after it that ends as wanted."""
    test = raising(grammar.random, outcome)
    if "*" in type_ or grammar.random.random() < 0.3:
        return f"[{text}][({test}) ? 0 : 0]", type_
    return f"({test}) ? ({text}) : {grammar.leaf(type_)}", type_
