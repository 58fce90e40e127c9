"""A typed grammar of the whole language.

Types are written as in `functions`: `int`, `[T]`, `{K:V}`, `?T`, `dyn`, and messages by their names. What comes out is
text that the checker mostly accepts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random

from differential.functions import TABLE
from differential.literals import PATTERNS, SCALARS, literal
from differential.trouble import raising, trouble
from fairlead.cel.schema import element, messages

KEYS = ("string", "string", "int", "uint", "bool")
NUMBERS = ("int", "uint", "double")
ORDERED = (*NUMBERS, "string", "bool", "bytes", "timestamp", "duration")
DOMAINS = {"K": KEYS, "N": NUMBERS, "M": NUMBERS, "O": ORDERED}
ROOTS = {
    "pod": "Pod", "node": "Node", "namespaceObject": "Namespace", "victim": "PlacedPod", "pods": "[PlacedPod]",
    "free": "{string:double}", "requested": "{string:double}", "allocatable": "{string:double}",
    "request": "{string:double}", "data": "{string:double}", "now": "timestamp",
}  # fmt: skip
PATHS = {
    "Pod": ("pod",), "Node": ("node",), "Namespace": ("namespaceObject",), "PlacedPod": ("victim", "pods[0]"),
    "ObjectMeta": ("pod.metadata", "node.metadata", "namespaceObject.metadata"), "PodSpec": ("pod.spec",),
    "PodStatus": ("pod.status",), "NodeSpec": ("node.spec",), "NodeStatus": ("node.status",),
    "PlacedPodMeta": ("victim.metadata",), "PlacedPodSpec": ("victim.spec",), "Container": ("pod.spec.containers[0]",),
    "Toleration": ("pod.spec.tolerations[0]",), "Taint": ("node.spec.taints[0]",),
    "NodeCondition": ("node.status.conditions[0]",), "Probe": ("pod.spec.containers[0].livenessProbe",),
    "HTTPGetAction": ("pod.spec.containers[0].livenessProbe.httpGet",), "Affinity": ("pod.spec.affinity",),
    "OwnerReference": ("pod.metadata.ownerReferences[0]",), "NodeSystemInfo": ("node.status.nodeInfo",),
}  # fmt: skip
VARIABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "number": ("int", ("pod.spec.priority", "pod.spec.priority + 1", "1 / pod.spec.priority", "request.size()")),
    "text": ("string", ("pod.metadata.name", "pod.metadata.labels['gpu']", "pod.metadata.labels[?'a'].orValue('any')")),
    "truth": (
        "bool",
        ("pod.spec.priority > 1", "request['cpu'] > 0.5", "pod.spec.containers.exists(c, c.name == 'a')"),
    ),
    "list": ("[int]", ("[1, 2, pod.spec.priority]", "pod.spec.containers.map(c, c.ports.size())")),
    "held": ("?string", ("pod.metadata.labels[?'gpu']", "pod.?spec.nodeName", "optional.none()")),
    "any": ("dyn", ("dyn(pod.spec.priority)", "dyn(pod)", "[1, 'a', pod.metadata.name][1]", "dyn(variables.number)")),
}
Recipe = tuple[int, tuple[tuple[str, str], ...], str]
_NAMES = ("x", "y", "i", "v", "node", "now")
_ATOMIC = re.compile(r"[\w.]*(\(.*\))?|'[^']*'", re.DOTALL)


@dataclass(frozen=True)
class Production:
    """A line of the table."""

    result: str
    template: str
    takes: tuple[str, ...]
    is_operator: bool


@cache
def productions() -> tuple[Production, ...]:
    made = []
    for line in TABLE.strip().splitlines():
        result, _, rest = line.partition(": ")
        template, _, takes = rest.rpartition(" |")
        is_operator = re.search(r"\} (\S+) \{|^[-!]\{", template) is not None and not template.startswith(("[", "{{"))
        made.append(Production(result, template, tuple(takes.split()), is_operator))
    return tuple(made)


def unify(pattern: str, type_: str, known: dict[str, str]) -> bool:
    """Bind the letters of a pattern so that it is this type."""
    if pattern == "T" or pattern in DOMAINS:
        if pattern in DOMAINS and type_ not in DOMAINS[pattern]:
            return False
        return known.setdefault(pattern, type_) == type_
    if pattern[0] != type_[0] or pattern[0] not in "[{?":
        return pattern == type_
    if pattern[0] == "?":
        return unify(pattern[1:], type_[1:], known)
    if pattern[0] == "[":
        return unify(pattern[1:-1], type_[1:-1], known)
    key, _, value = pattern[1:-1].partition(":")
    other_key, _, other = type_[1:-1].partition(":")
    return unify(key, other_key, known) and unify(value, other, known)


def unified(pattern: str, type_: str) -> dict[str, str] | None:
    """What the letters of a pattern stand for if it is this type."""
    known: dict[str, str] = {}
    return known if unify(pattern, type_, known) else None


def fill(pattern: str, known: Mapping[str, str]) -> str:
    """A pattern with its letters replaced."""
    return re.sub(r"\b[TKNMO]\b", lambda match: known[match[0]], pattern)


@cache
def fields_of(type_: str) -> tuple[tuple[str, str], ...]:
    """Messages and their fields that are of a type."""
    return tuple((m, f) for m in PATHS for f, t in messages()[m].items() if own_type(t) == type_)


def own_type(type_: str) -> str:
    """A type of the schema as it is written here."""
    inner = element(type_)
    if inner is None:
        return type_
    return f"[{inner}]" if type_.startswith("list") else f"{{string:{inner}}}"


@dataclass
class Grammar:
    """Writes expressions, from a source of chance."""

    random: Random
    variables: Mapping[str, str]
    scope: dict[str, str] = field(default_factory=dict)
    budget: int = 14  # of nodes that are not leaves

    def some_type(self, depth: int = 2) -> str:
        roll = self.random.random()
        if depth == 0 or roll < 0.6:
            return self.random.choice(tuple(SCALARS))
        if roll < 0.72:
            return f"[{self.some_type(depth - 1)}]"
        if roll < 0.8:
            return f"{{{self.random.choice(KEYS)}:{self.some_type(depth - 1)}}}"
        if roll < 0.88:
            return f"?{self.some_type(depth - 1)}"
        return "dyn" if roll < 0.94 else self.random.choice(tuple(PATHS))

    def recipe(self) -> Recipe:
        """What to make a root of: a line of the table or nothing, and a type."""
        roll = self.random.random()
        if roll < 0.7:
            line = self.random.choice(productions())
            known: dict[str, str] = {}
            self.complete(line, known)
            return productions().index(line), tuple(known.items()), fill(line.result, known)
        if roll < 0.8:
            return -3, (), "bool"
        return (-1 if roll < 0.9 else -2), (), self.some_type()

    def root(self, recipe: Recipe, outcome: str | None) -> str:
        """An expression; if an outcome is wanted, one that surely asks for something that ends so."""
        at, known, type_ = recipe
        if at == -3:
            text = self.presence(0)
        elif at >= 0:
            text = self.produce(productions()[at], dict(known), 3)
        else:
            text = (self.macro(type_, 3) if at == -2 else None) or self.inner(type_, 3)
        if outcome is None:
            return text
        return f"({raising(self.random, outcome)}) ? ({text}) : {self.leaf(type_)}"

    def complete(self, line: Production, known: dict[str, str]) -> None:
        for pattern in (line.result, *line.takes):
            for letter in re.findall(r"\b[TKNMO]\b", pattern):
                if letter not in known:
                    known[letter] = self.random.choice(DOMAINS[letter]) if letter in DOMAINS else self.some_type(1)

    def produce(self, line: Production, known: dict[str, str], depth: int) -> str:
        args = []
        for at, taken in enumerate(line.takes):
            if taken == "tiny" or (taken == "small" and self.random.random() < 0.8):
                text = str(self.random.randrange(-1, 5))
            else:
                text = self.expression("int" if taken == "small" else fill(taken, known), depth - 1)
            after = line.template.partition(f"{{{at}}}")[2][:1]
            before = line.template.partition(f"{{{at}}}")[0][-1:]
            needs = line.is_operator or after in (".", "[") or before in ("-", "!")
            args.append(f"({text})" if needs and not self.is_atomic(text) else text)
        template = line.template.replace("{P}", "'" + self.random.choice(PATTERNS) + "'")
        return template.format(*args)

    @staticmethod
    def is_atomic(text: str) -> bool:
        return (text[:1].isalpha() and text.isidentifier()) or re.fullmatch(
            r"'[^'\\]*'|[a-z]+\.[a-zA-Z]+", text
        ) is not None

    def expression(self, type_: str, depth: int) -> str:
        """Of a type, or of something that hides it, or that raises."""
        roll = self.random.random()
        if roll < 0.05 and type_ != "dyn":
            return f"dyn({self.inner(type_, depth)})"
        if roll < 0.06:
            return f"dyn({self.inner(self.some_type(1), depth - 1)})"
        if roll < 0.09 and depth > 0:
            return trouble(self.random, self.inner(type_, depth - 1))
        return self.inner(type_, depth)

    def inner(self, type_: str, depth: int) -> str:
        self.budget -= 1
        if depth <= 0 or self.budget <= 0:
            return self.leaf(type_)
        roll = self.random.random()
        if roll < 0.15:
            return self.leaf(type_)
        if roll < 0.4 and (text := self.macro(type_, depth)) is not None:
            return text
        if roll < 0.5 and fields_of(type_):
            message, name = self.random.choice(fields_of(type_))
            return f"{self.inner(message, depth - 1)}.{name}"
        if type_ == "bool" and roll < 0.55:
            return self.presence(depth)
        if type_[0] == "?" and roll < 0.6 and fields_of(type_[1:]):
            message, name = self.random.choice(fields_of(type_[1:]))
            if self.random.random() < 0.5:
                return f"{self.inner(message, depth - 1)}.?{name}"
            return f"{self.member(f'?{message}', depth - 1)}.{self.random.choice(('', '?'))}{name}"
        fitting = [(line, known) for line in productions() if (known := unified(line.result, type_)) is not None]
        if type_ == "dyn" or not fitting:
            return self.leaf(type_) if type_ != "dyn" else self.hidden(depth)
        line, known = self.random.choice(fitting)
        self.complete(line, known)
        return self.produce(line, known, depth)

    def presence(self, depth: int) -> str:
        message = self.random.choice(tuple(PATHS))
        scalars = [field for field, type_ in messages()[message].items() if type_ in SCALARS]
        fields = scalars if scalars and self.random.random() < 0.5 else list(messages()[message])
        return f"has({self.inner(message, depth - 1)}.{self.random.choice(fields)})"

    def member(self, type_: str, depth: int) -> str:
        text = self.expression(type_, depth)
        return text if self.is_atomic(text) else f"({text})"

    def hidden(self, depth: int) -> str:
        roll = self.random.random()
        if roll < 0.3:
            parts = ", ".join(self.inner(self.some_type(1), depth - 1) for _ in range(2))
            return f"[{parts}][{self.random.randrange(2)}]"
        if roll < 0.45:
            return f"{self.member('dyn', depth - 1)}.{self.random.choice(('a', 'metadata', 'spec', 'name'))}"
        if roll < 0.55:
            return f"{self.member('dyn', depth - 1)}[{self.expression('dyn', depth - 1)}]"
        return f"dyn({self.inner(self.some_type(1), depth - 1)})"

    def macro(self, type_: str, depth: int) -> str | None:
        random = self.random
        name = random.choice(_NAMES)
        if random.random() < 0.15:
            bound = self.some_type(1)
            return f"cel.bind({name}, {self.expression(bound, depth - 1)}, {self.under({name: bound}, type_, depth)})"
        if type_[0] == "?":
            held = self.some_type(1)
            start = self.member(f"?{held}", depth - 1)
            if random.random() < 0.5:
                return f"{start}.optMap({name}, {self.under({name: held}, type_[1:], depth)})"
            return f"{start}.optFlatMap({name}, {self.under({name: held}, type_, depth)})"
        if type_ != "bool" and type_[0] != "[":
            return None
        item = self.some_type(1)
        second = random.choice([other for other in _NAMES if other != name])
        source, one, two = self.range_of(item, depth)
        if type_ == "bool":
            if random.random() < 0.6:
                which = random.choice(("all", "exists", "exists_one"))
                return f"{source}.{which}({name}, {self.under({name: one}, 'bool', depth)})"
            which = random.choice(("all", "exists", "existsOne"))
            test = self.under({name: two[0], second: two[1]}, "bool", depth)
            return f"{source}.{which}({name}, {second}, {test})"
        wanted = type_[1:-1]
        roll = random.random()
        test = self.under({name: one}, "bool", depth - 1)
        if roll < 0.25:
            return f"{source}.map({name}, {self.under({name: one}, wanted, depth)})"
        if roll < 0.4:
            return f"{source}.map({name}, {test}, {self.under({name: one}, wanted, depth)})"
        if roll < 0.6:
            return f"{self.member(type_, depth - 1)}.filter({name}, {self.under({name: wanted}, 'bool', depth)})"
        if roll < 0.8:
            inside = {name: two[0], second: two[1]}
            test = f"{self.under(inside, 'bool', depth - 1)}, " if random.random() < 0.5 else ""
            return f"{source}.transformList({name}, {second}, {test}{self.under(inside, wanted, depth)})"
        key = self.under({name: wanted}, random.choice(ORDERED), depth - 1)
        return f"{self.member(type_, depth - 1)}.sortBy({name}, {key})"

    def range_of(self, item: str, depth: int) -> tuple[str, str, tuple[str, str]]:
        """What a macro goes through, and the types of its variables; maps have one entry, for their order."""
        roll = self.random.random()
        if roll < 0.2:
            return "pods", "PlacedPod", ("int", "PlacedPod")
        if roll < 0.7:
            return self.member(f"[{item}]", depth - 1), item, ("int", item)
        key = self.random.choice(KEYS)
        text = f"{{{literal(self.random, key)}: {self.expression(item, depth - 1)}}}"
        if roll < 0.85:
            return text, key, (key, item)
        if roll < 0.92:
            return f"dyn({text})", "dyn", ("dyn", "dyn")
        return f"dyn({self.inner(f'[{item}]', depth - 1)})", "dyn", ("dyn", "dyn")

    def under(self, names: Mapping[str, str], type_: str, depth: int) -> str:
        outer = self.scope
        self.scope = {**outer, **names}
        try:
            return self.expression(type_, depth - 1)
        finally:
            self.scope = outer

    def leaf(self, type_: str) -> str:
        random = self.random
        names = [name for name, of in self.scope.items() if of == type_]
        if names and random.random() < 0.7:
            return random.choice(names)
        names = [f"variables.{name}" for name, of in self.variables.items() if of == type_]
        names += [name for name, of in ROOTS.items() if of == type_ and name not in self.scope]
        if names and random.random() < 0.3:
            return random.choice(names)
        if type_ in PATHS:
            paths = [path for path in PATHS[type_] if path.split(".")[0].split("[")[0] not in self.scope]
            return random.choice(paths or list(PATHS[type_]))
        if type_ in SCALARS:
            if random.random() < 0.25 and (found := [one for one in fields_of(type_) if one[0] in PATHS]):
                message, name = random.choice(found)
                return f"{self.leaf(message)}.{name}"
            return literal(random, type_)
        if type_ == "dyn":
            return f"dyn({self.leaf(random.choice(tuple(SCALARS)))})"
        if type_[0] == "?":
            return "optional.none()" if random.random() < 0.3 else f"optional.of({self.leaf(type_[1:])})"
        if type_[0] == "[":
            return "[" + ", ".join(self.leaf(type_[1:-1]) for _ in range(random.randrange(4))) + "]"
        if type_[0] == "{":
            key, _, value = type_[1:-1].partition(":")
            keys = {self.key(key) for _ in range(random.randrange(3))}
            return "{" + ", ".join(f"{one}: {self.leaf(value)}" for one in sorted(keys)) + "}"
        return f"{type_}"  # a message without a path of its own: refused by the checker

    def key(self, type_: str) -> str:
        return self.random.choice(("'a'", "'b'", "'gpu'")) if type_ == "string" else literal(self.random, type_)
