"""Hostile expressions asked about hostile objects: none may go over the limits of the language in time or memory."""

import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from fairlead.cel.analysis.cost import ENGINE_COST
from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.lowering.program import translate_error
from fairlead.cel.lowering.pyast import CAUGHT
from fairlead.cel.values.errors import Abort
from fairlead.cel.values.value_types import Timestamp
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fuzz.against import Broken
from fuzz.grammar import Grammar, Kind
from fuzz.objects import objects

TIME_MS = 20.0
MEMORY = 16 << 20
TEXT_MAX = 4_096
ROUNDS = 3
STATIC = 0.8  # share of expressions that are made to be lowered
_NOW = Timestamp(1_800_000_000_000_000_000)
_DATA = ("load",)
_OF_VARIABLES: tuple[Kind, ...] = ("text", "list", "map", "number", "bool")


def evaluate(rule: CompiledExpression, pod: PodView, node: NodeView) -> str:
    """What comes of one evaluation; an error that is none of the language goes through."""
    try:
        rule.for_pod(pod)(node, _NOW)
    except Abort as error:
        return str(error.kind)
    except CAUGHT as error:
        return str(translate_error(error).kind)
    return "a value"


@dataclass(slots=True)
class Evaluations:
    """So many evaluations by chance."""

    random: Random
    timed: bool = True
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")
    _environment: Environment = field(default_factory=lambda: Environment(RULE, {}, _DATA))

    def run(self, count: int) -> None:
        """Evaluate. Raises Broken."""
        done = 0
        while done < count:
            rule = self._rule()
            if rule is None:
                continue
            for pod, node in self.random.sample(objects(), 2):
                self._one(rule, pod, node)
                done += 1

    def _rule(self) -> CompiledExpression | None:
        """One that a policy may have, with variables or without."""
        grammar, variables = Grammar(self.random), dict[str, CompiledExpression]()
        for at in range(self.random.choice((0, 0, 0, 1, 3))):
            kind = self.random.choice(_OF_VARIABLES)
            made = self._compiled(grammar.of(kind, self.random.randrange(1, 4)), variables)
            if made is not None:
                variables[f"x{at}"] = made
                grammar.bound.append((f"variables.x{at}", kind))
        rule = self._compiled(grammar.of("bool", self.random.randrange(2, 7)), variables)
        try:
            if rule is None or rule.evaluation == "ByteCode" or rule.engine_cost <= ENGINE_COST:
                return rule
        except RuntimeError:  # the engine takes the expression and each variable, but not all in one
            self.outcomes["refused"] += 1
            return None
        self.outcomes["too much for the engine"] += 1
        return None

    def _compiled(self, text: str, variables: Mapping[str, CompiledExpression]) -> CompiledExpression | None:
        if len(text) > TEXT_MAX:
            return None
        if self.random.random() < STATIC:
            text = _with_static_types(text)
        types = {name: one.expression.type for name, one in variables.items()}
        environment = Environment(RULE, types, _DATA) if types else self._environment
        try:
            return CompiledExpression(check(text, environment, VALUE), dict(variables))
        except ExpressionError:
            self.outcomes["refused"] += 1
            return None

    def _one(self, rule: CompiledExpression, pod: PodView, node: NodeView) -> None:
        text = _told(rule)
        traced = self.random.random() < 0.1
        if traced:
            tracemalloc.start()
        try:
            took = self._timed(rule, pod, node)
            peak = tracemalloc.get_traced_memory()[1] if traced else 0
        except Exception as error:
            raise Broken(f"{error!r} of {text}") from error
        finally:
            tracemalloc.stop()
        self.largest = max(self.largest, (peak, text))
        if peak > MEMORY:
            raise Broken(f"{peak} bytes for {text}")
        if traced or not self.timed:
            return
        for _ in range(ROUNDS):  # whoever else needs the processor does not count
            if took > TIME_MS / 2:
                took = min(took, self._timed(rule, pod, node))
        self.slowest = max(self.slowest, (took, text))
        if took > TIME_MS:
            raise Broken(f"{took:.1f} ms for {text}")

    def _timed(self, rule: CompiledExpression, pod: PodView, node: NodeView) -> float:
        begun = time.thread_time_ns()
        self.outcomes[f"{rule.evaluation}: {evaluate(rule, pod, node)}"] += 1
        return (time.thread_time_ns() - begun) / 1e6


def _with_static_types(text: str) -> str:
    """Return an expression that is lowered more likely: without `dyn`, and without functions that run on the engine."""
    text = text.replace("dyn(", "(").replace(".flatten()", ".distinct()").replace("[1] + (", "['1'] + (")
    text = (
        text.replace("strings.quote(", "string(")
        .replace("base64.encode(", "string(")
        .replace("base64.decode(", "bytes(")
    )
    return re.sub(r"\.sortBy\(\w+, ", ".map(k, ", text)


def _told(rule: CompiledExpression) -> str:
    given = "".join(f"; {name} = {one.expression.text}" for name, one in rule.variables.items())
    return f"{rule.expression.text}{given}"
