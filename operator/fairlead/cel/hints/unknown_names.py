"""Hints for unknown names: what the name stands for in CEL or here, or else the nearest valid name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.api.closest_name import closest_name
from fairlead.cel.engine.environment import ROOTS, Scope
from fairlead.cel.hints.rewrites import presence, write
from fairlead.cel.syntax.ast import Call, Node
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import messages

_LISTED: Final = 12
_NO_NULL: Final = "ask `has(...)` for a field, `'key' in map` for a map key"
_POD_AND_NODE: Final = "the pod is `pod`, its node `node`"

# Names of ValidatingAdmissionPolicy, of Helm, and of languages that policies are written beside.
VARIABLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("object", "self"), _POD_AND_NODE),
    **dict.fromkeys(("oldObject", "oldSelf"), "rules see only the present state, in `pod` and `node`"),
    "params": "the policy's own values are `variables...` and `data...`",
    "authorizer": "rules see no users and no permissions",
    "Values": "render the file with Helm first",
    **dict.fromkeys(("None", "nil", "undefined"), _NO_NULL),
    "True": "write `true`",
    "False": "write `false`",
}
_SUM: Final = "what all pods on the node request is `requested`, as in `requested['cpu']`"
_NO_LIBRARY: Final = "of the Kubernetes CEL libraries only quantities are available"
FUNCTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cidr", "ip", "isIP", "isCIDR", "url", "isURL", "semver", "isSemver"), _NO_LIBRARY),
    "sum": _SUM,
    "get": "write `map[?key].orValue(default)`",
    "not": "write `!(...)`",
    "keys": "macros loop over the keys of a map: leave it out",
    "hasLabel": "write `'key' in node.metadata.labels`",
}
_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("len", "length", "count"), "size"),
    **dict.fromkeys(("str", "toString"), "string"),
    **dict.fromkeys(("float", "number"), "double"),
    "min": "math.least",
    "max": "math.greatest",
    **dict.fromkeys(("any", "some"), "exists"),
    "every": "all",
    **dict.fromkeys(("toLowerCase", "lower"), "lowerAscii"),
    **dict.fromkeys(("toUpperCase", "upper"), "upperAscii"),
    "default": "orValue",
    "HasPrefix": "startsWith",
    "HasSuffix": "endsWith",
    "weekday": "getDayOfWeek",
}

MACRO_NAMES: Final = frozenset(
    """
    all cel.bind exists existsOne exists_one filter has map optFlatMap optMap sortBy transformList transformMap
    transformMapEntry
    """.split()  # noqa: SIM905 - a list that people read
)
FUNCTION_NAMES: Final = frozenset(
    """
    add asApproximateFloat asInteger base64.decode base64.encode bool bytes charAt compareTo contains distinct
    double duration dyn endsWith exp first flatten format getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds hasValue indexOf int isGreaterThan
    isInteger isLessThan isQuantity join last lastIndexOf lists.range log2 lowerAscii matches math.abs
    math.bitAnd math.bitNot math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil math.floor
    math.greatest math.isFinite math.isInf math.isNaN math.least math.round math.sign math.sqrt math.trunc
    optional.none optional.of optional.ofNonZeroValue or orValue quantity regex.extract regex.extractAll
    regex.replace replace reverse sets.contains sets.equivalent sets.intersects sign size slice sort split
    startsWith string strings.quote sub substring timestamp trim type uint upperAscii value
    """.split()  # noqa: SIM905 - a list that people read
)
Worded = tuple[str, str]
"""What is wrong, and what would be right."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that an expression may use."""

    scope: Scope
    variables: Collection[str]
    data: Collection[str] = ()


def undefined_field(field: str, message: str) -> Worded:
    """Describe a field that a message does not have."""
    fields = messages().get(message, {})
    near = _below(field, fields, 1.0) or did_you_mean(field, fields)
    if message.startswith("Placed"):
        kept = f"available: {', '.join(fields)}"
        return f"`{field}` is not available for pods on the node (`pods`, `victim`)", near or kept
    return f"{message} has no field `{field}`", near or _below(
        field, fields, 0.8
    ) or f"its fields are {_listed(fields)}"


def _below(name: str, fields: Mapping[str, str], cutoff: float) -> str:
    """Return the nearest name one level deeper, for a path with a field left out."""
    deeper = {inner: f"{field}.{inner}" for field, type_ in fields.items() for inner in messages().get(type_, ())}
    near = closest_name(name, deeper, cutoff=cutoff)
    return f"did you mean `{deeper[near]}`?" if near else ""


def unknown_variable(name: str, parent: Node | None, names: Names) -> Worded:
    """Describe a variable that does not exist, by its name with fields after it and the expression around it."""
    root, _, rest = name.partition(".")
    if root == "variables":
        declared = f"declared: {_listed(names.variables)}" if names.variables else "none is declared before it"
        if not rest:
            return "`variables` is not a map", "write `variables.name`"
        short = rest.partition(".")[0]
        return f"unknown variable `variables.{short}`", did_you_mean(short, names.variables) or declared
    available = f"available: {_listed([*names.scope.roots, 'variables'])}"
    if root in ROOTS:
        return f"`{root}` is not available in {names.scope.what}", available
    return f"unknown variable `{root}`", _meant(name, parent, names) or available


def _meant(name: str, parent: Node | None, names: Names) -> str:
    root = name.partition(".")[0]
    for holder, declared in (("variables", names.variables), ("data", names.data)):
        if root in declared:
            return f"did you mean `{holder}.{root}`?"
    if hint := VARIABLES.get(root) or did_you_mean(root, [*names.scope.roots, "variables"]):
        return hint
    is_compared = isinstance(parent, Call) and parent.function in ("_==_", "_!=_", "@in", "_[_]")
    return f"a string needs quotes: `'{root}'`" if is_compared and name == root else ""


def unknown_function(call: Call, names: Names) -> Worded:
    """Describe a function that does not exist, or that does and is called in another way."""
    name = call.function
    if name in FUNCTION_NAMES or name in MACRO_NAMES:
        return f"`{name}` cannot be called like this", _how_to_call(call)
    if name in ROOTS and not call.member:
        return f"unknown function `{name}`", f"it is a value: write `{name}`"
    if name in names.variables:
        return f"unknown function `{name}`", f"did you mean `variables.{name}`?"
    meant = {part_of_time(name), *(one for one in FUNCTION_NAMES if one.endswith(f".{name}"))} - {""}
    near = _SYNONYMS.get(name) or next(iter(meant), "") or closest_name(name, FUNCTION_NAMES | MACRO_NAMES, cutoff=0.75)
    return f"unknown function `{name}`", FUNCTIONS.get(name) or (f"did you mean `{near}`?" if near else "")


def part_of_time(name: str) -> str:
    """Return the function that gives a part of a time, such as `getHours` for `hour`; "" if there is none."""
    singular = f"get{name.capitalize().removesuffix('s')}"
    return next((one for one in (singular, f"{singular}s") if one in FUNCTION_NAMES), "")


def _how_to_call(call: Call) -> str:
    match call:
        case Call(function="has" | "size", member=False):
            return "it takes one value"
        case Call(function="exists", args=(one,), member=False):
            return write(presence(one))
        case Call(function=name, args=(target,), member=True) if name not in MACRO_NAMES:
            return write(f"{name}({text(target)})")
        case Call(function=name, args=(target, *rest), member=False) if name not in MACRO_NAMES:
            return write(f"{operand_text(target)}.{name}({', '.join(map(text, rest))})")
        case Call(function=name, args=(target, *_)) if name in MACRO_NAMES:
            return write(f"{operand_text(target)}.{name}(x, ...)")
    return ""


def did_you_mean(name: str, candidates: Collection[str]) -> str:
    """Return the nearest name as a question."""
    near = closest_name(name, candidates)
    return f"did you mean `{near}`?" if near else ""


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:_LISTED]) + (", ..." if len(shown) > _LISTED else "")
