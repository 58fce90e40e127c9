"""Upper bounds of the cost of functions of texts, and of the sizes of their results, by the sizes of their operands.

Costs are in the units of `meter`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead.cel.analysis.sizes import NUMBER, ONE, TEXTS, Size, SizeLimits, product
from fairlead.cel.functions.regex import SEARCH, pattern_search_units, pattern_units
from fairlead.cel.syntax.ast import Call, Const, Type
from fairlead.cel.values.meter import SHORT_TEXT, STEP
from fairlead.cel.values.work_units import DURATION_UNIT, PARSED_UNIT

WRITTEN: Final = 1_000
"""Cost of writing an address."""
CONSTANT: Final[Mapping[str, int]] = {
    "timestamp": 300,
    **dict.fromkeys(("matches", "regex.extract", "regex.extractAll", "regex.replace"), SEARCH),
    "quantity": 400,
    "isQuantity": 400,
    "int": 40,
    "uint": 40,
    "double": 40,
    "bool": 15,
    "string": 30,
    "getDayOfYear": 100,
    **dict.fromkeys(
        ("sign", "isInteger", "asInteger", "asApproximateFloat", "add", "sub", "isGreaterThan", "isLessThan"), 100
    ),
    **dict.fromkeys(("compareTo", "containsIP", "containsCIDR", "masked", "isLoopback", "isLinkLocalUnicast"), 100),
    **dict.fromkeys(("ip", "isIP", "cidr", "isCIDR"), 600),
    **dict.fromkeys(("semver", "isSemver", "isLinkLocalMulticast"), 200),
    "ip.isCanonical": 600 + WRITTEN,
    "isGlobalUnicast": 300,
}
"""Functions whose cost hardly depends on their operands, and is not small."""
ENGINE_OPAQUE: Final = 1_500
"""Cost of a quantity, an address or a version on the engine, which holds it as text."""
_FORMATTED: Final = 1_400  # characters of a number: the engine writes up to 1,000 digits after the point
CALL: Final = 15


@dataclass(frozen=True, slots=True)
class Called:
    """Call of a function, with the known sizes and types of its operands."""

    node: Call
    sizes: Sequence[Size]
    types: Sequence[Type]
    """Types that they are known to have."""
    result: Type
    limits: SizeLimits

    def __getitem__(self, at: int) -> Size:
        """Return the size of an operand."""
        return self.sizes[at] if at < len(self.sizes) else Size(0)

    def type(self, at: int = 0) -> str:
        """Return the name of the type that an operand is known to have."""
        return self.types[at].name

    @property
    def is_text(self) -> bool:
        """Return whether the first operand is a text."""
        return self.type() in TEXTS

    @property
    def is_engine(self) -> bool:
        """Return whether the engine evaluates it."""
        return self.limits.is_engine

    @property
    def characters(self) -> float:
        """Cost of counting the characters of a text: the engine has it as UTF-8."""
        return self[0].most / 2 if self.is_engine and self.type() not in ("list", "map") else 0


Cost = tuple[Size, float]


def search(text: float, part: float, *, backwards: bool = False) -> float:
    """Return the cost of searching for a text in another."""
    if part <= 1:
        return STEP + text / 16
    if text == inf or part == inf:
        return inf
    if backwards or part < 100 or text < 30_000:
        return STEP + text * part / 8
    return STEP + (text + part) / 4 + 2_500 * 1_250 / 8  # a bound: the text may be shorter


def proportional(units: float, grows: float = 1, more: float = 0) -> Callable[[Called], Cost]:
    """Return the cost of functions whose result is about as long as their text."""
    return lambda call: (Size(call[0].most * grows + more, call[0].item), CALL + call[0].most * units)


def replaced(call: Called) -> Cost:
    """Return the cost of `replace`."""
    text, old, new = call[0].most, call[1].most, call[2].most
    size = text + product(text + 1, new)
    return Size(size), search(text, old) + (text + 1) + size / 4


def split(call: Called) -> Cost:
    """Return the cost of `split`."""
    text, separator = call[0].most, call[1].most
    return Size(max(text, 1) + 1, Size(text)), search(text, separator) + 12 * (text + 1) + text / 4


def joined(call: Called) -> Cost:
    """Return the cost of `join`."""
    each = call[0].inside.most + (call[1].most if len(call.sizes) > 1 else 0)
    size = product(call[0].most, each)
    return Size(size), CALL + call[0].most * 4 + size / 4


def converted(call: Called) -> Cost:
    """Return the cost of a conversion."""
    function = call.node.function
    type_ = call.result
    if function in ("string", "bytes") and call.type() in (*TEXTS, "dyn"):
        most = call[0].most * (4 if function == "bytes" else 1)
        return Size(most if call.is_text else max(most, NUMBER)), CALL + call[0].most
    if function == "duration":
        return ONE, CONSTANT["timestamp"] + DURATION_UNIT * min(call[0].most, SHORT_TEXT)
    size = Size(NUMBER) if type_.name in TEXTS else ONE
    text = call[0].most if call.is_engine else min(call[0].most, SHORT_TEXT)
    if call.is_engine and function == "quantity":
        text += ENGINE_OPAQUE
    if not call.is_engine and function in ("int", "uint", "double"):
        text /= 4
    return size, CONSTANT.get(function, 100) + text


def parsed(at: int, most: int) -> Callable[[Called], Cost]:
    """Return the cost of functions that read an address or a version, of at most so many characters."""

    def cost(call: Called) -> Cost:
        text = min(call[at].most, most) * PARSED_UNIT if call.type(at) in (*TEXTS, "dyn") else 0
        return ONE, CONSTANT[call.node.function] + text + (ENGINE_OPAQUE if call.is_engine else 0)

    return cost


def matched(call: Called) -> Cost:
    """Return the cost of `matches` and the functions of `regex`, which take a text and a pattern."""
    text, pattern = call[0].most, call.node.args[1]
    if isinstance(pattern, Const) and isinstance(pattern.value, str):
        size, compiled = pattern_search_units(pattern.value), pattern_units(pattern.value) if call.is_engine else 0
    else:
        size, compiled = inf, inf
    once = SEARCH + (text + 10) * size
    if call.node.function in ("matches", "regex.extract"):
        return Size(text), compiled + once
    made = text + product(text + 1, call[2].most + 10 * text) if call.node.function == "regex.replace" else text
    result = Size(made) if call.node.function == "regex.replace" else Size(text + 1, Size(text))
    return result, compiled + product(text + 1, once) + made / 4


def formatted(call: Called) -> Cost:
    """Return the cost of `format`."""
    text = call[0].most
    arguments = call[1]
    each = max(_FORMATTED, 2 * arguments.inside.walked() if arguments.inside.item else 2 * arguments.inside.most)
    size = text + product(text / 2, each)
    template = call.node.args[0]
    if isinstance(template, Const) and isinstance(template.value, str):
        if template.value.count("%") == template.value.count("%s") + template.value.count("%d"):
            each = max(32, 2 * arguments.inside.walked() if arguments.inside.item else arguments.inside.most)
        size = text + template.value.count("%") * each
    return Size(size), 10 * CALL + size / 2
