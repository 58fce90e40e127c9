"""Hints for unknown names: what the name stands for in CEL or here, or else the nearest valid name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.closest_name import closest_name
from fairlead.cel.engine.environment import ROOTS, Scope
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.hints.calls import is_namespace, of_another_library, with_name
from fairlead.cel.hints.rewrites import Hints, Rewriting, presence, write
from fairlead.cel.hints.time_hints import COUNTED, of_word
from fairlead.cel.syntax.ast import Call, Const, ListExpr, Node, Select
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import PACKAGE, messages

_LISTED: Final = 12
_NO_NULL: Final = "ask `has(...)` for a field, `'key' in map` for a map key"
_POD_AND_NODE: Final = "the pod is `pod`, its node `node`"

# Names of ValidatingAdmissionPolicy, of Helm, and of languages that policies are written beside.
VARIABLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("object", "self"), _POD_AND_NODE),
    **dict.fromkeys(("oldObject", "oldSelf"), "rules see only the present state, in `pod` and `node`"),
    "nodes": "a rule is asked for each node, and sees that one as `node`",
    "params": "the policy's own values are `variables...` and `data...`",
    "authorizer": "rules see no users and no permissions",
    "Values": "render the file with Helm first",
    **dict.fromkeys(("None", "nil", "undefined"), _NO_NULL),
}
_LITERALS: Final = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false"}
_SUM: Final = "what all pods on the node request is `requested`, as in `requested['cpu']`"
_NO_LIBRARY: Final = "of the Kubernetes CEL libraries only quantities, addresses and versions are available"
FUNCTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("url", "isURL"), _NO_LIBRARY),
    "sum": _SUM,
    "values": "macros with two variables loop over keys and values, as in `labels.exists(key, value, ...)`",
    **dict.fromkeys(
        ("named", "dns1123Label", "dns1123Subdomain", "qualifiedName", "labelValue"),
        "the formats of Kubernetes are not available: write a pattern, as in `text.matches('^[a-z0-9-]+$')`",
    ),
}
_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("len", "length", "count", "sizeof"), "size"),
    **dict.fromkeys(("str", "toString"), "string"),
    **dict.fromkeys(("float", "number", "parseFloat"), "double"),
    **dict.fromkeys(("parseInt", "toInt", "integer"), "int"),
    "min": "math.least",
    "max": "math.greatest",
    **dict.fromkeys(("any", "some", "anyMatch"), "exists"),
    **dict.fromkeys(("every", "allMatch"), "all"),
    "where": "filter",
    **dict.fromkeys(("match", "test", "regexMatch"), "matches"),
    **dict.fromkeys(("substr", "mid"), "substring"),
    **dict.fromkeys(("strip", "trimSpace"), "trim"),
    "ceiling": "math.ceil",
    **dict.fromkeys(("toLowerCase", "toLower", "lower", "lowercase"), "lowerAscii"),
    **dict.fromkeys(("toUpperCase", "toUpper", "upper", "uppercase"), "upperAscii"),
    "HasPrefix": "startsWith",
    "HasSuffix": "endsWith",
    **dict.fromkeys(("weekday", "dayOfWeek"), "getDayOfWeek"),
}

_DATES: Final = {"day": "getDate", "date": "getDate", "year": "getFullYear", "weekday": "getDayOfWeek"}
MACRO_NAMES: Final = frozenset(
    """
    all cel.bind exists existsOne exists_one filter has map optFlatMap optMap sortBy transformList transformMap
    transformMapEntry
    """.split()  # noqa: SIM905 - a list that people read
)
FUNCTION_NAMES: Final = frozenset(
    """
    add asApproximateFloat asInteger base64.decode base64.encode bool bytes charAt cidr compareTo contains
    containsCIDR containsIP distinct double duration dyn endsWith exp family first flatten format getDate
    getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds
    hasValue indexOf int ip ip.isCanonical isCIDR isGlobalUnicast isGreaterThan isInteger isIP isLessThan
    isLinkLocalMulticast isLinkLocalUnicast isLoopback isQuantity isSemver isUnspecified join last lastIndexOf
    lists.range log2 lowerAscii major masked matches math.abs math.bitAnd math.bitNot math.bitOr
    math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil math.floor math.greatest math.isFinite math.isInf
    math.isNaN math.least math.round math.sign math.sqrt math.trunc minor optional.none optional.of
    optional.ofNonZeroValue or orValue patch prefixLength quantity regex.extract regex.extractAll regex.replace
    replace reverse semver sets.contains sets.equivalent sets.intersects sign size slice sort split startsWith
    string strings.quote sub substring timestamp trim type uint upperAscii value
    """.split()  # noqa: SIM905 - a list that people read
)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names that an expression may use."""

    scope: Scope
    variables: Collection[str]
    data: Collection[str] = ()


def undefined_field(field: str, message: str, select: Select | None) -> tuple[str, Hints]:
    """Describe a field that a message does not have."""
    if opaque := OPAQUE.get(message) or OPAQUE.get(f"{PACKAGE}.{message}"):
        return f"{opaque.shown} has no fields", iter([f"use its functions, such as {opaque.function}"])
    fields = messages().get(message, {})
    nears: tuple[str, ...]
    if message.startswith("Placed"):
        fault = f"`{field}` is not available for pods on the node (`pods`, `victim`)"
        nears, otherwise = (_below(field, fields, 1.0), closest_name(field, fields)), f"available: {', '.join(fields)}"
        if field == "priorityClassName":
            nears, otherwise = (), "compare `spec.priority` with the number of the class: kubectl get priorityclasses"
    else:
        fault = f"{message} has no field `{field}`"
        nears = (_below(field, fields, 1.0), closest_name(field, fields), _below(field, fields, 0.8))
        otherwise = f"its fields are {_listed(fields)}"
    return fault, _fields(select, nears, otherwise)


def _fields(select: Select | None, nears: tuple[str, ...], otherwise: str) -> Hints:
    for near in filter(None, nears):
        if select is not None:
            made = f"{operand_text(select.operand)}.{near}"
            yield Rewriting(_meaning(near), f"has({made})" if select.test_only else made, select, is_name=True)
    yield otherwise


def _below(name: str, fields: Mapping[str, str], cutoff: float) -> str:
    """Return the nearest name one level deeper, for a path with a field left out."""
    deeper = {inner: f"{field}.{inner}" for field, type_ in fields.items() for inner in messages().get(type_, ())}
    near = closest_name(name, deeper, cutoff=cutoff)
    return deeper[near] if near else ""


def unknown_variable(name: str, node: Node | None, around: Sequence[Node], names: KnownNames) -> tuple[str, Hints]:
    """Describe a variable that does not exist, by its name with fields after it and the expression around it."""
    root, _, rest = name.partition(".")
    if root == "variables":
        declared = f"declared: {_listed(names.variables)}" if names.variables else "none is declared before it"
        if not rest:
            return "`variables` is not a map", _of_variables(node, around)
        short = rest.partition(".")[0]
        near = closest_name(short, names.variables)
        part = around[0] if around else None
        return f"unknown variable `variables.{short}`", _named(
            f"variables.{near}" if near else "", part, near, declared
        )
    available = f"available: {_listed([*names.scope.roots, 'variables'])}"
    if root in ROOTS:
        return f"`{root}` is not available in {names.scope.what}", iter((available,))
    return f"unknown variable `{root}`", _meant(name, node, around, names, available)


def _of_variables(node: Node | None, around: Sequence[Node]) -> Hints:
    match around:
        case [Call(function="_[_]", args=(held, Const(value=str(name)))) as index, *_] if held is node:
            yield from write(f"variables.{name}", index)
    yield "write `variables.name`"


def _named(code: str, part: Node | None, near: str, otherwise: str) -> Hints:
    if code and part is not None:
        yield Rewriting(_meaning(near), code, part)
    yield otherwise


def _meant(name: str, node: Node | None, around: Sequence[Node], names: KnownNames, available: str) -> Hints:
    root = name.partition(".")[0]
    compared = next((one for one in around[:1] if isinstance(one, Call)), None)
    if node is not None:
        for holder, declared in (("variables", names.variables), ("data", names.data)):
            if root in declared:
                yield Rewriting(_meaning(f"{holder}.{root}"), f"{holder}.{root}", node, is_name=True)
        yield from write(_LITERALS.get(root, ""), node)
        if compared is not None:
            for other in compared.args:
                if isinstance(other, Call) and other.function in COUNTED:
                    yield from of_word(other.function, node)
    if advice := VARIABLES.get(root):
        if root == "nodes" and node is not None:
            yield Rewriting(_meaning("node"), "node", node)
        yield advice
        return
    if node is not None:
        near = closest_name(root, [*names.scope.roots, "variables"])
        yield from (Rewriting(_meaning(near), near, node, is_name=True),) if near else ()
        quoted = f"'{root}'"
        if name == root and _may_be_text(around):
            yield Rewriting(f"a string needs quotes: `{quoted}`", quoted, node)
    yield available


def _may_be_text(around: Sequence[Node]) -> bool:
    """Report whether a name stands where a text may be meant: it is compared, a key, or in a list."""
    match around:
        case [Call(function="_==_" | "_!=_" | "@in" | "_[_]") | ListExpr(), *_]:
            return True
    return False


def unknown_function(call: Call, names: KnownNames) -> tuple[str, Hints]:
    """Describe a function that does not exist, or that does and is called in another way."""
    name = call.function
    if name in FUNCTION_NAMES or name in MACRO_NAMES:
        return f"`{name}` cannot be called like this", _how_to_call(call)
    return f"unknown function `{name}`", _functions(call, names)


def _functions(call: Call, names: KnownNames) -> Hints:
    name = call.function
    if name in ROOTS and not call.member:
        match call.args:
            case (Const(value=str()) as key,):
                yield from write(f"{name}[{text(key)}]", call)
        yield from write(name, call, before="it is a value: ")
        yield from write(f"{name}['cpu']", call, before="it is a map: ")
    if name in names.variables:
        yield Rewriting(_meaning(f"variables.{name}"), f"variables.{name}", call)
    yield from of_another_library(call)
    if advice := FUNCTIONS.get(name):
        yield advice
    meant = {part_of_time(name), *(one for one in FUNCTION_NAMES if one.endswith(f".{name}"))} - {""}
    close = closest_name(name, FUNCTION_NAMES | MACRO_NAMES, cutoff=0.75)
    for near in filter(None, (_SYNONYMS.get(name, ""), *sorted(meant), close)):
        for code in with_name(call, near, ROOTS):
            yield Rewriting(_meaning(near), code, call, is_name=True)


def part_of_time(name: str) -> str:
    """Return the function that gives a part of a time, such as `getHours` for `hour`; "" if there is none."""
    if name in _DATES:
        return _DATES[name]
    singular = f"get{name.capitalize().removesuffix('s')}"
    return next((one for one in (singular, f"{singular}s") if one in FUNCTION_NAMES), "")


def _how_to_call(call: Call) -> Hints:
    match call:
        case Call(function="has", args=(held, item), member=True):
            yield from write(f"{text(item)} in {operand_text(held)}", call)
        case Call(function="has" | "size", member=False):
            yield "it takes one value"
        case Call(function="contains" | "startsWith" | "endsWith" | "matches", args=(target, *words)) if len(words) > 1:
            yield from write(" || ".join(f"{operand_text(target)}.{call.function}({text(one)})" for one in words), call)
        case Call(function="exists", args=(one,), member=False):
            yield from write(presence(one), call)
        case Call(function="existsOne", args=(target, variable, test)):
            code = f"{operand_text(target)}.exists_one({text(variable)}, {text(test)})"
            yield from write(code, call, shown=f"{operand_text(target)}.exists_one({text(variable)}, ...)")
        case Call(function="exists_one", args=(target, first, second, test)):
            names = f"{text(first)}, {text(second)}"
            code = f"{operand_text(target)}.existsOne({names}, {text(test)})"
            yield from write(code, call, shown=f"{operand_text(target)}.existsOne({names}, ...)")
        case Call(function=name, args=(target, *rest), member=True) if name not in MACRO_NAMES and is_namespace(target):
            yield from write(f"{name}({', '.join(map(text, rest))})", call)
        case Call(function=name, args=(target,), member=True) if name not in MACRO_NAMES:
            yield from write(f"{name}({text(target)})", call)
        case Call(function=name, args=(target, *rest), member=False) if name not in MACRO_NAMES:
            yield from write(f"{operand_text(target)}.{name}({', '.join(map(text, rest))})", call)
        case Call(function=name, args=(target, *_)) if name in MACRO_NAMES:
            shown = f"{operand_text(target)}.{name}(x, ...)"
            yield from write(f"{operand_text(target)}.{name}(x, true)", call, shown=shown)
            yield f"write `{shown}`"


def _meaning(name: str) -> str:
    return f"did you mean `{name}`?"


def did_you_mean(name: str, candidates: Collection[str]) -> str:
    """Return the nearest name as a question."""
    near = closest_name(name, candidates)
    return _meaning(near) if near else ""


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:_LISTED]) + (", ..." if len(shown) > _LISTED else "")
