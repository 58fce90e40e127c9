"""A typed grammar of the whole language.

Types are written as in `functions`: `int`, `[T]`, `{K:V}`, `?T`, and messages by their names. There is no `dyn`, with
which an expression runs on the engine. What comes out is text that the checker mostly accepts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from differential import macros
from differential.data import DECLARED
from differential.literals import PATTERNS, SCALARS, literal
from differential.shapes import DOMAINS, KEYS, PATHS, ROOTS, Production, fields_of, fill, fitting, optional
from differential.trouble import trouble
from differential.world import VARIABLES
from fairlead.cel.values.schema import messages


@dataclass
class Grammar:
    """Writes expressions, from a source of chance."""

    random: Random
    calm: bool = False  # nothing is added that raises
    planted: str | None = None  # an outcome that is yet to be asked for, somewhere
    budget: int = 14  # of nodes that are not leaves
    scope: dict[str, str] = field(default_factory=dict)

    def some_type(self, depth: int = 2) -> str:
        roll = self.random.random()
        if depth == 0 or roll < 0.6:
            return self.random.choice(tuple(SCALARS))
        if roll < 0.72:
            return f"[{self.some_type(depth - 1)}]"
        if roll < 0.8:
            return f"{{{self.random.choice(KEYS)}:{self.some_type(depth - 1)}}}"
        if roll < 0.88:
            return optional(self.some_type(depth - 1))
        return self.random.choice(tuple(PATHS))

    def complete(self, line: Production, known: Mapping[str, str]) -> dict[str, str]:
        """What the letters of a line stand for, those that are open chosen by chance."""
        found = dict(known)
        for pattern in (line.result, *line.takes):
            for letter in re.findall(r"\b[TKNO]\b", pattern):
                if letter not in found:
                    found[letter] = self.random.choice(DOMAINS[letter]) if letter in DOMAINS else self.some_type(1)
        if any("?T" in pattern for pattern in (line.result, *line.takes)):
            found["T"] = found["T"].lstrip("?")
        return found

    def produce(self, line: Production, known: Mapping[str, str], depth: int) -> str:
        args = []
        for at, taken in enumerate(line.takes):
            if taken == "tiny" or (taken == "small" and self.random.random() < 0.8):
                text = str(self.random.randrange(3) if self.calm else self.random.randrange(-1, 5))
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
        """An expression of a type, or one that raises."""
        if self.planted is not None and self.random.random() < 0.4:
            outcome, self.planted = self.planted, None
            return trouble(self.random, self.inner(type_, depth - 1), outcome)
        roll = 1.0 if self.calm else self.random.random()
        if roll < 0.04 and depth > 0:
            return trouble(self.random, self.inner(type_, depth - 1))
        return self.inner(type_, depth)

    def inner(self, type_: str, depth: int) -> str:
        self.budget -= 1
        if depth <= 0 or self.budget <= 0:
            return self.leaf(type_)
        roll = self.random.random()
        if roll < 0.15:
            return self.leaf(type_)
        if roll < 0.4 and (macro := macros.some(self.random, type_)):
            return macros.write(self, macro, type_, depth)
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
        if not fitting(type_):
            return self.leaf(type_)
        line, known = self.random.choice(fitting(type_))
        return self.produce(line, self.complete(line, known), depth)

    def presence(self, depth: int) -> str:
        message = self.random.choice(tuple(PATHS))
        scalars = [field for field, type_ in messages()[message].items() if type_ in SCALARS]
        fields = scalars if scalars and self.random.random() < 0.5 else list(messages()[message])
        return f"has({self.inner(message, depth - 1)}.{self.random.choice(fields)})"

    def member(self, type_: str, depth: int) -> str:
        text = self.expression(type_, depth)
        return text if self.is_atomic(text) else f"({text})"

    def under(self, names: Mapping[str, str], type_: str, depth: int) -> str:
        """An expression in which there are these names, too."""
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
        names = [f"variables.{name}" for name, (of, _) in VARIABLES.items() if of == type_]
        names += [name for name, of in ROOTS.items() if of == type_ and name not in self.scope]
        if names and random.random() < 0.3:
            return random.choice(names)
        if type_ in PATHS:
            paths = [path for path in PATHS[type_] if path.split(".")[0].split("[")[0] not in self.scope]
            return random.choice(paths or list(PATHS[type_]))
        if type_ in SCALARS:
            return self.scalar(type_)
        if type_[0] == "?":
            return "optional.none()" if random.random() < 0.3 else f"optional.of({self.leaf(type_[1:])})"
        if type_[0] == "[":
            return "[" + ", ".join(self.leaf(type_[1:-1]) for _ in range(random.randrange(self.calm, 4))) + "]"
        if type_[0] == "{":
            key, _, value = type_[1:-1].partition(":")
            keys = {self.key(key) for _ in range(random.randrange(self.calm, 3 + self.calm))}
            return "{" + ", ".join(f"{one}: {self.leaf(value)}" for one in sorted(keys)) + "}"
        return type_  # a message without a path of its own: refused by the checker

    def scalar(self, type_: str) -> str:
        if type_ == "double" and self.random.random() < 0.1:
            return f"data.{self.random.choice(DECLARED)}"
        found = [one for one in fields_of(type_) if one[0] in PATHS]
        if found and self.random.random() < 0.25:
            message, name = self.random.choice(found)
            return f"{self.leaf(message)}.{name}"
        return literal(self.random, type_)

    def key(self, type_: str) -> str:
        return self.random.choice(("'a'", "'b'", "'gpu'")) if type_ == "string" else literal(self.random, type_)
