"""Hostile expressions asked about hostile objects: none may take more time or memory than the limits of the language.

Expressions are of the kind that multiplies: texts put after themselves, lists of lists, loops over what others wrote.
"""

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.cost import ENGINE_COST
from fairlead.cel.environment import RULE
from fairlead.cel.errors import Abort
from fairlead.cel.lowering.builder import CAUGHT
from fairlead.cel.lowering.program import OF_NODE, translated
from fairlead.cel.messages import from_json
from fairlead.cel.values import Timestamp
from fairlead.policy.expressions import Compiled
from fuzz.against import Broken

TIME_MS = 20.0
MEMORY = 16 << 20
TEXT_MAX = 4_096
ROUNDS = 3
_NOW = Timestamp(1_800_000_000_000_000_000)
_KEYS = ("a", "b", "c")
_PATTERNS = ("x", "(x+x+)+y", "x.*y|x", "(a|x)*b(a|x){50}y", "[a-z]+,?", r"\\pL", "^(x|ab|,)*$", "")
_NUMBERS = ("0", "1", "3", "100", "1000", "5000", "9999", "20000")


@dataclass(slots=True)
class Grammar:
    """Texts, lists and bools that grow."""

    random: Random
    bound: list[tuple[str, str]] = field(default_factory=list)  # names of macros, and what they are

    def text(self, depth: int) -> str:
        """A text."""
        if depth <= 0 or self.random.random() < 0.1:
            return self._leaf("text")
        a, b, c = (self._lazily(kind, depth) for kind in ("text", "text", "text"))
        number = self.random.choice(_NUMBERS)
        return self.random.choice(
            (
                lambda: f"({a()} + {b()})",
                lambda: f"{a()}.replace({b()}, {c()})",
                lambda: f"{a()}.lowerAscii()",
                lambda: f"{a()}.substring(0, {number})",
                lambda: f"strings.quote({a()})",
                lambda: f"base64.encode(bytes({a()}))",
                lambda: f"string(duration({a()}))",
                lambda: f"{a()}.trim()",
                lambda: f"{self.list(depth - 1)}.map(t, string(t)).join({a()})",
                lambda: f"regex.replace({a()}, '{self.random.choice(_PATTERNS)}', {b()})",
                lambda: f"'%s%s'.format([{a()}, {b()}])",
                lambda: self._binding(a(), "text", depth, self.text),
            )
        )()

    def list(self, depth: int) -> str:
        """A list of texts or numbers."""
        if depth <= 0 or self.random.random() < 0.1:
            return self._leaf("list")
        a, b = (self._lazily("list", depth) for _ in range(2))
        number = self.random.choice(_NUMBERS)
        return self.random.choice(
            (
                lambda: f"({a()} + {b()})",
                lambda: f"lists.range({number})",
                lambda: f"{self.text(depth - 1)}.split({self.text(depth - 1)})",
                lambda: f"{a()}.distinct()",
                lambda: f"{a()}.map(i, {self._inside('i', depth)})",
                lambda: f"{a()}.filter(i, {self.bool(depth - 1)})",
                lambda: f"[{', '.join([a()] * self.random.choice((2, 10, 30)))}].flatten()",
                lambda: f"{a()}.sortBy(i, string(i))",
                lambda: f"{a()}.reverse()",
                lambda: f"regex.extractAll({self.text(depth - 1)}, '{self.random.choice(_PATTERNS)}')",
                lambda: self._binding(a(), "list", depth, self.list),
            )
        )()

    def bool(self, depth: int) -> str:
        """A condition."""
        if depth <= 0:
            return self.random.choice(("true", "false", "pod.spec.priority > 1"))
        text, other = self._lazily("text", depth), self._lazily("text", depth)
        a, b = self._lazily("list", depth), self._lazily("list", depth)
        return self.random.choice(
            (
                lambda: f"{text()}.contains({other()})",
                lambda: f"{text()}.lastIndexOf({other()}) > 0",
                lambda: f"{text()} == {other()}",
                lambda: f"{text()} < {other()}",
                lambda: f"{text()}.matches('{self.random.choice(_PATTERNS)}')",
                lambda: f"{text()}.matches({other()})",
                lambda: f"double({text()}) > 1.0",
                lambda: f"quantity({text()}).isGreaterThan(quantity('1'))",
                lambda: f"timestamp({text()}) > now",
                lambda: f"{text()} in {a()}.map(t, string(t))",
                lambda: f"{a()}.all(i, {self.bool(depth - 1)})",
                lambda: f"{a()}.exists(i, {self.bool(depth - 1)})",
                lambda: f"dyn({a()}) == dyn({b()})",
                lambda: f"sets.contains({a()}.map(i, dyn(i)), {b()}.map(i, dyn(i)))",
                lambda: f"{a()}.size() > 3",
                lambda: f"({self.bool(depth - 1)} || {self.bool(depth - 1)})",
                lambda: "dyn(pod) == dyn(node)",
                lambda: f"({self._unsure(depth)}) == dyn({text()})",
                lambda: f"{a()}.exists(i, v, dyn(v) != i)",
                lambda: f"dyn({a()}).exists(i, v, v == i)",
                lambda: f"{{{text()}: {a()}}} == {{{other()}: {b()}}}",
                lambda: f"{text()} in {{{other()}: 1}}",
                lambda: f"{{{text()}: 1}}[?{other()}].orValue(2) > 1",
                lambda: f"{a()}.all(i, {{{text()}: 1}}[{other()}] == 1 || true)",
                lambda: f"{a()}.all(i, now + duration('1h') > now - duration('1h') && string(now) != '')",
                lambda: f"{a()}.map(i, quantity('1.5').add(quantity('3')).compareTo(quantity({text()}))).size() > 0",
                lambda: f"{a()}.map(i, optional.of(i).optMap(o, [o, o]).orValue([])).flatten().size() > 3",
                lambda: f"sets.equivalent({a()}.map(i, string(i)), {text()}.split({other()}))",
                lambda: f"now.getHours({text()}) > 3",
                lambda: "pods.exists(p, dyn(p) == dyn(pod) || p.metadata == p.metadata)",
            )
        )()

    def _unsure(self, depth: int) -> str:
        """What the checker takes for a number, and may be any text."""
        value = f"([1] + dyn([{self.text(depth - 2)}]))[1]"
        return f"cel.bind(u, {value}, {' + '.join(['u'] * self.random.choice((1, 2, 10, 40)))})"

    def _lazily(self, kind: str, depth: int) -> Callable[[], str]:
        return lambda: (self.text if kind == "text" else self.list)(depth - 1)

    def _inside(self, name: str, depth: int) -> str:
        return self.random.choice((name, f"string({name})", self.text(depth - 1), f"[{name}, {name}, {name}]"))

    def _binding(self, value: str, kind: str, depth: int, result: Callable[[int], str]) -> str:
        name = f"v{len(self.bound)}"
        self.bound.append((name, kind))
        try:
            return f"cel.bind({name}, {value}, {result(depth - 1)})"
        finally:
            self.bound.pop()

    def _leaf(self, kind: str) -> str:
        names = [name for name, of in self.bound if of == kind]
        if names and self.random.random() < 0.7:
            return self.random.choice(names)
        if kind == "list":
            return self.random.choice(
                (
                    "lists.range(9999)",
                    "pods.map(p, p.metadata.name)",
                    "pod.spec.containers[0].args",
                    "['a', 'b,c', 'xx']",
                    "pod.metadata.annotations.map(k, k)",
                )
            )
        return self.random.choice(
            (
                f"pod.metadata.annotations['{self.random.choice(_KEYS)}']",
                f"node.metadata.annotations[?'{self.random.choice(_KEYS)}'].orValue('x')",
                "pod.spec.containers[0].args[0]",
                "node.metadata.name",
                "','",
                f"'{'ab,' * self.random.choice((1, 10, 60))}'",
                "''",
            )
        )


@cache
def objects() -> tuple[SimpleNamespace, ...]:
    """Pods, each with a node: as large as the API server takes them, in different ways."""
    return tuple(_object(Random(f"object/{at}")) for at in range(6))


def _object(random: Random) -> SimpleNamespace:
    def metadata(name: str) -> dict[str, Any]:
        texts = ("x" * 16_000, "ab," * 5_000, "1" * 9_000 + "x", "0" * 4_400, r"\pL{1000}", "x" * 100_000, "é" * 9_000)
        annotations = {key: random.choice(texts) for key in _KEYS}
        return {"name": name, "labels": {"app": "a"}, "annotations": annotations}

    args = random.choice((["z" * 700_000, "z" * 700_000], ["ab"] * 200_000, [",".join(["a"] * 1_000)] * 9))
    spec = {"priority": 5, "containers": [{"name": "c", "args": args}]}
    placed = [from_json("PlacedPod", {"metadata": {"name": f"p{at}", "labels": {"app": "a"}}}) for at in range(1_000)]
    roots: dict[str, Any] = {name: {} for name in OF_NODE}
    roots |= {"node": from_json("Node", {"metadata": metadata("n")}), "pods": placed}
    return SimpleNamespace(
        pod=from_json("Pod", {"metadata": metadata("p"), "spec": spec}),
        namespaceObject=from_json("Namespace", {}),
        request={"cpu": 1.0},
        node=SimpleNamespace(**roots),
    )


def evaluate(rule: Compiled, facts: SimpleNamespace) -> str:
    """What comes of one evaluation; an error that is none of the language goes through."""
    try:
        rule.for_pod(facts)(facts.node, _NOW)
    except Abort as error:
        return str(error.kind)
    except CAUGHT as error:
        return str(translated(error).kind)
    return "a value"


@dataclass(slots=True)
class Evaluations:
    """So many evaluations by chance."""

    random: Random
    timed: bool = True
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")
    _environment: Environment = field(default_factory=lambda: Environment(RULE))

    def run(self, count: int) -> None:
        """Evaluate. Raises Broken."""
        done = 0
        while done < count:
            rule = self._rule()
            if rule is None:
                continue
            for facts in self.random.sample(objects(), 2):
                self._one(rule, facts)
                done += 1

    def _rule(self) -> Compiled | None:
        """One that a policy may have."""
        text = Grammar(self.random).bool(self.random.randrange(2, 7))
        if len(text) > TEXT_MAX:
            return None
        try:
            rule = Compiled(check(text, self._environment, VALUE))
        except ExpressionError:
            self.outcomes["refused"] += 1
            return None
        if rule.evaluation == "Engine" and rule.engine_cost > ENGINE_COST:
            self.outcomes["too much for the engine"] += 1
            return None
        return rule

    def _one(self, rule: Compiled, facts: SimpleNamespace) -> None:
        text = rule.expression.text
        traced = self.random.random() < 0.1
        if traced:
            tracemalloc.start()
        try:
            took = self._timed(rule, facts)
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
            if took > TIME_MS:
                took = min(took, self._timed(rule, facts))
        self.slowest = max(self.slowest, (took, text))
        if took > TIME_MS:
            raise Broken(f"{took:.1f} ms for {text}")

    def _timed(self, rule: Compiled, facts: SimpleNamespace) -> float:
        begun = time.thread_time_ns()
        self.outcomes[f"{rule.evaluation}: {evaluate(rule, facts)}"] += 1
        return (time.thread_time_ns() - begun) / 1e6
