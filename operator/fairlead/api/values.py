"""String types with a required form, whose errors say the form in words, not as a pattern."""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

PATTERN = r"([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?"
MAX_LENGTH = 21
_SECONDS = (3600, 60, 1)
_PARTS = re.compile(PATTERN)


def parse_duration(text: str) -> int:
    """Return the seconds of a duration. Raises ValueError if the text is not one."""
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        raise ValueError(f"{text[:40]!r} is not a duration such as 90s, 5m or 1h30m")
    return sum(int(part[:-1]) * each for part, each in zip(parts.groups(), _SECONDS, strict=True) if part)


VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of a string: a pattern for programs, a message for people."""

    pattern: str
    message: str
    bounds: tuple[str, str] | None = None
    """Shortest and longest value of a duration."""
    but_not: tuple[str, ...] = ()
    """Strings that match the pattern but are not allowed."""
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", re.compile(self.pattern, re.ASCII))

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(text: str) -> str:
            if not self._fits(text):
                raise PydanticCustomError("shape", "{message}", {"message": self.message})
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        found[VALIDATIONS] = [*found.get(VALIDATIONS, []), {"rule": self.rule(), "message": self.message}]
        return found

    def rule(self) -> str:
        """Return the form as a CEL rule of the CRD."""
        rule = f"self.matches(r'^{self.pattern}$')"
        if self.but_not:
            rule += f" && !(self in [{', '.join(repr(word) for word in self.but_not)}])"
        if self.bounds:
            low, high = self.bounds
            rule += f" && duration(self) >= duration('{low}') && duration(self) <= duration('{high}')"
        return rule

    def _fits(self, text: str) -> bool:
        if not self._compiled.fullmatch(text) or text in self.but_not:
            return False
        if not self.bounds:
            return True
        low, high = (parse_duration(one) for one in self.bounds)
        return low <= parse_duration(text) <= high


def within(low: str, high: str) -> Shape:
    """Return bounds for a `Duration`, as in `Annotated[Duration, within("1s", "1h")]`."""
    message = f"write a duration such as 90s, 5m or 1h30m, from {low} to {high}"
    return Shape(PATTERN, message, (low, high))


class Duration(str):
    """A duration as written in the policy. Set its bounds with `within`."""

    __slots__ = ()

    @property
    def seconds(self) -> int:
        """Length in seconds."""
        return parse_duration(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.str_schema(min_length=1, max_length=MAX_LENGTH, strict=True)
        return core_schema.no_info_after_validator_function(cls, text)


_DECIMAL = {
    letter: Fraction(10) ** power for letter, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_BINARY = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_UNITS = {"": Fraction(1), **_DECIMAL, **_BINARY}
_QUANTITY_TEXT = Annotated[
    str,
    Field(min_length=1, max_length=21),
    Shape(
        r"[0-9]{1,9}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i)?",
        "write a quantity such as 500m, 2 or 1.5Gi: at most 9 digits before and after the point",
    ),
]


class Quantity(str):
    """A quantity as written in the policy; never below 0."""

    __slots__ = ()

    @property
    def amount(self) -> float:
        """Amount in base units: cores, bytes, pieces."""
        number = self.rstrip("".join(_UNITS))
        return float(Fraction(number) * _UNITS[self.removeprefix(number)])

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(_QUANTITY_TEXT))


_WORDS_OF_CEL = (
    *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
    *("namespace", "null", "package", "return", "true", "var", "void", "while"),
)
# The API server estimates the cost of a pattern by its length times all the places where a policy may have one.
_LETTER_OR_DIGIT = r"[^\W_]"
_DNS_LABEL = Shape(
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "write a name such as gpu-class: lower-case letters, digits and '-', a letter or digit at both ends",
)
_QUALIFIED = Shape(
    rf"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_LETTER_OR_DIGIT}([-\w.]{{0,61}}{_LETTER_OR_DIGIT})?",
    "write a key such as gpu or example.com/gpu: after the '/' at most 63 letters, digits, '-', '_' and '.'",
)
_LABEL_VALUE = Shape(
    rf"({_LETTER_OR_DIGIT}([-\w.]*{_LETTER_OR_DIGIT})?)?",
    "write a label's value: at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends",
)
_IDENTIFIER = Shape(
    "[a-z][A-Za-z0-9]*",
    "write a name that expressions can use, such as freeCores: letters and digits, lower-case first, no word of CEL",
    but_not=_WORDS_OF_CEL,
)
_STRATEGY = Shape(
    "[a-z][A-Za-z0-9]*",
    "write the name of a strategy, such as spread or nodeReadiness: letters and digits, lower-case first",
)
_SUBDOMAIN = Shape(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "write a name such as gpu-pool: lower-case letters, digits, '-' and '.', a letter or digit at both ends",
)

Name = Annotated[str, Field(min_length=1, max_length=63), _DNS_LABEL]
"""Name of a rule, an item, a namespace or an object."""
ShortName = Annotated[str, Field(min_length=1, max_length=40), _DNS_LABEL]
"""Name that is a part of another name."""
ObjectName = Annotated[str, Field(min_length=1, max_length=63), _SUBDOMAIN]
"""Name of an object of the cluster."""
Identifier = Annotated[str, Field(min_length=1, max_length=63), _IDENTIFIER]
"""Name for use in expressions."""
StrategyName = Annotated[str, Field(min_length=1, max_length=63), _STRATEGY]
"""Name of a strategy."""
QualifiedKey = Annotated[str, Field(min_length=1, max_length=317), _QUALIFIED]
"""Key of a label or an annotation."""
LabelValue = Annotated[str, Field(max_length=63), _LABEL_VALUE]
"""Value of a label."""
Expression = Annotated[str, Field(min_length=1, max_length=4096)]
"""CEL; what it can read depends on the field."""
