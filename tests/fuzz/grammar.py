"""Expressions of the kind that multiplies, by chance: over what others wrote, and what is made of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from fuzz.objects import KEYS

Kind = Literal["text", "list", "number", "bool", "map", "objects"]
_PATTERNS: Final = ("x", "(x+x+)+y", "x.*y|x", "(a|x)*b(a|x){50}y", "[a-z]+,?", r"\\pL", "^(x|ab|,)*$", "", "(?i)é")
_KINDS: Final[tuple[Kind, ...]] = ("text", "list", "map", "bool", "number", "objects")
_MACROS: Final = ("exists", "all", "exists_one")
_FIELDS: Final = {
    "node.spec.taints": ("key", "value", "effect"),
    "node.status.conditions": ("type", "status", "reason"),
    "pod.spec.containers": ("name", "image", "imagePullPolicy"),
    "pod.spec.tolerations": ("key", "operator", "value"),
    "pod.spec.volumes": ("name", "name", "name"),
    "pods": ("metadata.name", "metadata.labels['app']", "metadata.labels['none']"),
}
_NO_TEXT: Final = ("dyn(1)", "dyn([1])", "dyn({'a': 1})", "dyn(now)", "dyn(pods)", "dyn(node.spec)", "dyn(1.5)")


@dataclass(slots=True)
class Grammar:
    """Texts, lists, maps and bools that grow."""

    random: Random
    bound: list[tuple[str, Kind]] = field(default_factory=list)
    """Names of macros and of the policy's variables, and what they are."""
    _names: int = 0

    def of(self, kind: Kind, depth: int) -> str:
        """An expression of a kind."""
        names = [name for name, of in self.bound if of == kind]
        if names and self.random.random() < (0.2 if depth > 0 else 0.6):
            return self.random.choice(names)
        if self.random.random() < 0.05 and depth > 1:
            return self._binding(kind, depth)
        ways: dict[Kind, Callable[[int], str]] = {
            "text": self._text,
            "list": self._list,
            "number": self._number,
            "bool": self._bool,
            "map": self._map,
            "objects": self._objects,
        }
        return ways[kind](depth)

    def _text(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.1:
            return self._fact()
        a, b, c = (self._lazily("text", depth) for _ in range(3))
        number, pattern = self._amount(), self.random.choice(_PATTERNS)
        map_ = self._lazily("map", depth)
        return self._one(
            lambda: f"({a()} + {b()})",
            lambda: f"{a()}.replace({b()}, {c()})",
            lambda: f"{a()}.{self.random.choice(('lowerAscii', 'upperAscii', 'trim', 'reverse'))}()",
            lambda: f"{a()}.substring(0, {number})",
            lambda: f"{a()}.charAt({number})",
            lambda: f"strings.quote({a()})",
            lambda: f"base64.encode(bytes({a()}))",
            lambda: f"string(base64.decode({a()}))",
            lambda: f"string(duration({a()}))",
            lambda: f"string(timestamp({a()}))",
            lambda: f"string({self.of('number', depth - 1)})",
            lambda: f"string({self.random.choice(_NO_TEXT)})",
            lambda: f"{self.of('list', depth - 1)}.map(t, string(t)).join({a()})",
            lambda: f"regex.replace({a()}, '{pattern}', {b()})",
            lambda: f"regex.extract({a()}, '{pattern}').orValue({b()})",
            lambda: f"'%s%s'.format([{a()}, {b()}])",
            lambda: f"{map_()}[{a()}]",
            lambda: f"{map_()}[?{a()}].orValue({b()})",
            lambda: f"{map_()}[?{a()}].optMap(o, o + o).orValue({b()})",
            lambda: f"{map_()}[?{a()}].or({map_()}[?{b()}]).value()",
            lambda: f"({self.of('bool', depth - 1)} ? {a()} : {b()})",
        )

    def _number(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.1:
            return self._one(
                self._amount, lambda: "pods.size()", lambda: "pod.spec.priority", lambda: "now.getDayOfYear()"
            )
        text, other = self._lazily("text", depth), self._lazily("text", depth)
        a, b, list_ = self._lazily("number", depth), self._lazily("number", depth), self._lazily("list", depth)
        return self._one(
            lambda: f"{text()}.{self.random.choice(('indexOf', 'lastIndexOf'))}({other()})",
            lambda: f"{list_()}.size()",
            lambda: f"int({text()})",
            lambda: f"int(double({text()}))",
            lambda: f"int(uint({a()}) + uint({b()}) * 2u)",
            lambda: f"({a()} {self.random.choice('+-*/%')} {b()})",
            lambda: f"math.greatest({list_()}.map(i, {self.random.choice(('1', 'dyn(1.5)', 'size(string(i))'))}))",
            lambda: f"int(math.{self.random.choice(('round', 'ceil', 'sqrt', 'sign'))}(double({a()})))",
            lambda: f"math.bitShiftLeft({a()}, 3)",
            lambda: f"(now - node.metadata.creationTimestamp + duration({text()})).getHours()",
            lambda: "now.getHours('Europe/Berlin')",
            lambda: f"quantity({text()}).add(quantity({other()})).asInteger()",
            lambda: f"int(data.load * double({a()}) + free[?{text()}].orValue(1.0))",
        )

    def _list(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.1:
            return self._one(
                lambda: f"lists.range({self._amount()})",
                lambda: "pods.map(p, p.metadata.name)",
                lambda: "pod.spec.containers[0].args",
                lambda: "['a', 'b,c', 'xx']",
                lambda: "pod.metadata.annotations.map(k, k)",
                lambda: "node.status.images.map(i, i.names[0])",
                lambda: "pod.spec.containers.map(c, c.env.size())",
            )
        a, b, name = self._lazily("list", depth), self._lazily("list", depth), self._name()
        return self._one(
            lambda: f"({a()} + {b()})",
            lambda: f"{self.of('text', depth - 1)}.split({self.of('text', depth - 1)})",
            lambda: f"{a()}.{self.random.choice(('distinct', 'reverse', 'sort'))}()",
            lambda: f"{a()}.map({name}, {self._inside(name, depth)})",
            lambda: f"{a()}.filter({name}, {self.of('bool', depth - 1)})",
            lambda: f"{a()}.transformList(k, {name}, {self._inside(name, depth)})",
            lambda: f"{self.of('map', depth - 1)}.transformList(k, v, {self.random.choice(('k', 'v', '[k, v]'))})",
            lambda: f"[{', '.join([a()] * self.random.choice((2, 10, 30)))}].flatten()",
            lambda: f"{a()}.map({name}, [{name}{', 1' * self.random.choice((3, 30, 300))}])",
            lambda: f"{a()}.map({name}, {self._entries(name)})",
            lambda: f"{a()}.sortBy({name}, {self.random.choice((f'string({name})', f'size(string({name})) % 3'))})",
            lambda: f"{a()}.slice(0, {self._amount()})",
            lambda: f"regex.extractAll({self.of('text', depth - 1)}, '{self.random.choice(_PATTERNS)}')",
            lambda: f"{a()}.map({name}, double(size(string({name}))))",
            lambda: f"{a()}.map({name}, dyn({name}))",
            lambda: f"[?{self.of('map', depth - 1)}[?{self.of('text', depth - 1)}]]",
            lambda: f"{self.of('objects', depth - 1)}.map(o, dyn(o))",
        )

    def _map(self, depth: int) -> str:
        if depth > 1 and self.random.random() < 0.3:
            text, other = self.of("text", depth - 1), self.of("text", depth - 1)
            return f"{{{text}: {other}, ?{other}: {self.of('map', depth - 1)}[?{text}]}}"
        holder = self.random.choice(("pod", "node", "namespaceObject", "pods[0]"))
        key = "labels" if holder == "pods[0]" else self.random.choice(("labels", "annotations"))
        return self._one(
            lambda: f"{holder}.metadata.{key}",
            lambda: f"{holder}.?metadata.?{key}.orValue({{'a': 'b'}})",
            lambda: "pod.spec.nodeSelector",
            lambda: "node.status.allocatable",
        )

    def _objects(self, depth: int) -> str:
        made = self.random.choice([*_FIELDS, "pods", "pods"])
        return f"{made}.filter(x, {self.of('bool', depth - 2)})" if depth > 2 and self.random.random() < 0.2 else made

    def _bool(self, depth: int) -> str:
        if depth <= 0:
            return self.random.choice(("true", "false", "pod.spec.priority > 1", "node.metadata.name == 'x'"))
        text, other = self._lazily("text", depth), self._lazily("text", depth)
        a, b = self._lazily("list", depth), self._lazily("list", depth)
        number, map_, name, macro = (
            self._lazily("number", depth),
            self._lazily("map", depth),
            self._name(),
            self.random.choice(_MACROS),
        )
        return self._one(
            lambda: f"{text()}.{self.random.choice(('contains', 'startsWith', 'endsWith'))}({other()})",
            lambda: f"{text()} {self.random.choice(('==', '<', '!='))} {other()}",
            lambda: f"{text()}.matches('{self.random.choice(_PATTERNS)}')",
            lambda: f"{text()}.matches({other()})",
            lambda: f"double({text()}) > 1.0",
            lambda: f"isQuantity({text()}) && quantity({other()}).isGreaterThan(quantity('1'))",
            lambda: f"isIP({text()}) && cidr('10.0.0.0/8').containsIP({other()})",
            lambda: f"isSemver({text()}, true) && semver({other()}, true).isLessThan(semver('1.37.0'))",
            lambda: f"timestamp({text()}) + duration('1h') > now",
            lambda: f"{text()} in {a()}.map(t, string(t))",
            lambda: f"{text()} in {map_()}",
            lambda: f"{a()}.{macro}({name}, {self._with(name, 'bool', depth)})",
            lambda: f"{a()}.{macro}({name}, {self._again(self._with(name, 'bool', depth - 2))})",
            lambda: f"{map_()}.{self.random.choice(('exists', 'all'))}(k, v, {self._pair(depth)})",
            lambda: f"{self._of_objects(depth)}",
            lambda: f"{self._of_objects(depth)}",
            lambda: f"dyn({a()}) == dyn({b()})",
            lambda: f"dyn({self.of('objects', 0)}) == dyn({self.of('objects', 0)})",
            lambda: f"{map_()} == {map_()}",
            lambda: f"sets.{self._of_sets()}({a()}.map(i, dyn(i)), {b()}.map(i, dyn(i)))",
            lambda: f"sets.{self._of_sets()}({a()}.map(i, string(i)), {text()}.split({other()}))",
            lambda: f"{number()} > {number()}",
            lambda: f"({self.of('bool', depth - 1)} {self.random.choice(('&&', '||'))} {self.of('bool', depth - 1)})",
            lambda: f"!({self.of('bool', depth - 1)})",
            lambda: f"({self._unsure(depth)}) == dyn({text()})",
            lambda: f"dyn({a()}).exists(i, v, v == i)",
            lambda: f"type({self.random.choice(_NO_TEXT)}) == type({text()})",
            lambda: f"optional.ofNonZeroValue({self._empty()}).hasValue()",
            lambda: f"{a()}.all({name}, {self._again(f'optional.ofNonZeroValue({self._empty()}).hasValue()')})",
            lambda: f"{a()}.map(i, optional.of(i).optMap(o, [o, o]).orValue([])).flatten().size() > 3",
            lambda: f"{{{text()}: {a()}}} == {{{other()}: {b()}}}",
            lambda: self.random.choice(("dyn(pod) == dyn(node)", "pods.exists(p, dyn(p) == dyn(pods[0]))")),
        )

    def _of_objects(self, depth: int) -> str:
        held = self.random.choice(list(_FIELDS))
        read = f"o.{self.random.choice(_FIELDS[held])}"
        name = self._name()
        inner = self.random.choice(("c.name == 'z'", "c.resources.requests['cpu'] == '1'", "c == o.spec.containers[0]"))
        self.bound.append((read, "text"))
        try:
            test = self.random.choice(
                (
                    f"{read} == {self.of('text', depth - 2)}",
                    self.of("bool", depth - 2),
                    f"o == {held}[0]",
                    f"o in {held}",
                    f"o.spec.containers.exists(c, {inner})" if held == "pods" else f"{read} in {self.of('map', 0)}",
                )
            )
        finally:
            self.bound.pop()
        part = f".slice(0, {self._amount()})" if self.random.random() < 0.4 else ""
        return self._one(
            lambda: f"{held}{part}.{self.random.choice(_MACROS)}(o, {self._again(test)})",
            lambda: f"{held}{part}.filter(o, {test}).map({name}, dyn({name})).distinct().size() > 1",
            lambda: f"{held}{part}.sortBy(o, {read}).size() > 1",
        )

    def _pair(self, depth: int) -> str:
        self.bound += [("k", "text"), ("v", "text")]
        try:
            return self.of("bool", depth - 1)
        finally:
            del self.bound[-2:]

    def _with(self, name: str, kind: Kind, depth: int) -> str:
        """Of an element: its text is one of those to choose from."""
        self.bound.append((f"string({name})", "text"))
        try:
            return self.of(kind, depth - 1)
        finally:
            self.bound.pop()

    def _again(self, test: str) -> str:
        """The same many times, in one step of a loop."""
        return self.random.choice((" || ", " && ")).join([f"({test})"] * self.random.choice((1, 1, 3, 10, 40)))

    def _entries(self, name: str) -> str:
        entries = ", ".join(f"'{at}': 1" for at in range(self.random.choice((1, 10, 100))))
        return f"{{'x': {name}, {entries}}}"

    def _empty(self) -> str:
        return self.random.choice(("node.status.config", "pod.spec.securityContext", "pod.spec", "pods", "pod.status"))

    def _of_sets(self) -> str:
        return self.random.choice(("contains", "equivalent", "intersects"))

    def _unsure(self, depth: int) -> str:
        """What the checker takes for a number, and may be any text."""
        value = f"([1] + dyn([{self.of('text', depth - 2)}]))[1]"
        return f"cel.bind(u, {value}, {' + '.join(['u'] * self.random.choice((1, 2, 10, 30)))})"

    def _inside(self, name: str, depth: int) -> str:
        return self.random.choice((name, f"string({name})", self._with(name, "text", depth), f"[{name}, {name}]"))

    def _binding(self, kind: Kind, depth: int) -> str:
        name, of = self._name(), self.random.choice(_KINDS)
        value = self.of(of, depth - 1)
        self.bound.append((name, of))
        try:
            return f"cel.bind({name}, {value}, {self.of(kind, depth - 1)})"
        finally:
            self.bound.pop()

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _lazily(self, kind: Kind, depth: int) -> Callable[[], str]:
        return lambda: self.of(kind, depth - 1)

    def _one(self, *ways: Callable[[], str]) -> str:
        return self.random.choice(ways)()

    def _amount(self) -> str:
        """As many small ones as large ones."""
        return str(int(10 ** self.random.uniform(0, 4.2)))

    def _fact(self) -> str:
        key = self.random.choice(KEYS)
        return self.random.choice(
            (
                f"pod.metadata.annotations['{key}']",
                f"node.metadata.annotations['{key}']",
                f"node.metadata.annotations[?'{key}'].orValue('x')",
                f"cel.bind(a, node.metadata.annotations, a['{key}'])",
                f"dyn(pod.metadata.annotations)['{key}']",
                "namespaceObject.metadata.labels['app']",
                "pod.spec.containers[0].args[0]",
                "pods[0].metadata.labels['app']",
                "node.metadata.labels['none']",
                "node.metadata.name",
                "','",
                f"'{'ab,' * self.random.choice((1, 10, 60))}'",
                "''",
                "'1.5'",
            )
        )
