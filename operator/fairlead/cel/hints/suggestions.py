"""What to write instead of an operator or a function that does not take what it is given.

The tables say what; here the parts of the source are found that their cures name.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.hints.excerpt import Excerpt, has_comment, parenthesised, short, side
from fairlead.cel.hints.type_table import INDICES, METHODS, OPERATORS, RESULTS, Cure
from fairlead.cel.syntax.source_refs import code
from fairlead.cel.values.schema import messages


def of_operator(function: str, types: list[str], place: Excerpt) -> str:
    """What makes the types fit."""
    return _first(OPERATORS, f"{function}({', '.join(types)})", _operands(function, types, place))


def of_index(types: list[str], place: Excerpt) -> str:
    """What takes the place of `a[b]`."""
    values = {
        "target": place.target,
        "index": ", ".join(place.arguments),
        "digits": ", ".join(one for one in place.arguments if one.isdigit()),
        "bare": _unquoted(", ".join(place.arguments)),
        "item": item(place.target),
    }
    return _first(INDICES, ", ".join(types), values | {"key": _key(_item_of(types[0]))})


def of_call(name: str, types: list[str], place: Excerpt) -> str:
    """What makes the arguments fit; the place is that of the bracket."""
    target = called_on(name, place)
    arguments = ", ".join(place.arguments)
    values = {
        "name": name,
        "target": target,
        "arguments": arguments,
        "argument": parenthesised(arguments),
        "item": item(target),
        "key": _key(_item_of(types[0])),
        "arguments_quoted": quoted(arguments),
        "target_optional": optional(target),
        "target_zero": zero_literal(types[0]),
        "default": "",
    }
    if name == "orValue" and len(types) > 1:
        values["default"] = _default(types[0], arguments)
    return _first(METHODS, f"{name}({', '.join(types)})", values)


def of_result(wanted: str, type_: str, text: str) -> str:
    """What makes an expression give what is wanted."""
    if has_comment(text):
        return "what follows `//` is a comment" if not re.match(r"\s*//", text) else ""
    text = text.strip()
    if _unquoted(text) and wanted != "a string":
        return "leave the quotes out"
    values = {
        "text": text,
        "read": "" if "?" in code(text) else text,
        "held": parenthesised(text),
        "side": side(text, of="=="),
        "test": side(text, of="?"),
        "zero": zero_literal(type_.removeprefix("optional_type<").removesuffix(">")),
    }
    return _first(RESULTS, f"{wanted}, {type_}", values)


def of_field(field: str, type_: str, place: Excerpt) -> str:
    """What takes the place of a field of something that has none; the place is that of the dot."""
    target = short(place.target)
    inside = _item_of(type_)
    here = item(target)
    if target == "request" or target.startswith("request."):
        return ADMISSION
    if field in ("length", "size", "len", "count"):
        return f"write `{parenthesised(target)}.size()`"
    if inside.endswith("Condition"):
        return f"write `{target}.exists({here}, {here}.type == '{field}' && {here}.status == 'True')`"
    if field in messages().get(inside, {}):
        return f"it has items: write `{target}.exists({here}, {here}.{field} ...)`"
    if type_ in ("timestamp", "duration"):
        near = get_close_matches(f"get{field.capitalize()}", _PARTS_OF_TIME, n=1, cutoff=0.7)
        return f"write `{target}.{near[0]}()`" if near else ""
    if key := _key(inside):
        return f"it has items: write `{target}.exists({here}, {here}.{key} == '{field}' ...)`"
    return ""


ADMISSION: Final = "`request` is what the pod requests, as in `request['cpu']`; who asks for the pod is not seen"
_OF_ADMISSION: Final = r"(?:operation|userInfo|object|oldObject|name|namespace|kind|resource|subResource|uid|dryRun)"
_PARTS_OF_TIME: Final = (
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
)


def filled(template: str, values: Mapping[str, str]) -> str:
    """A cure with what it names; empty if something cannot be taken from the source."""
    named = re.findall(r"\{(\w+)\}", template)
    if any(not values.get(name) for name in named):
        return ""
    return re.sub(
        r"\{(\w+)\}", lambda found: short(values[found[1]]) if template != found[0] else values[found[1]], template
    )


def called_on(name: str, place: Excerpt) -> str:
    """What stands before `.name(`, if the place is that of the bracket."""
    before = place.code[: place.at].rstrip()
    dot = before.removesuffix(name).rstrip()
    return Excerpt(place.source, len(dot) - 1).target if before.endswith(name) and dot.endswith(".") else ""


def item(target: str) -> str:
    """What a macro may call the items of a list."""
    words = re.findall(r"[A-Za-z]+", target.rpartition(".")[2])
    return words[0][0].lower() if words else "x"


def zero_literal(type_: str) -> str:
    """What an optional of this type is without its value."""
    inner = type_.removeprefix("optional_type(").removesuffix(")")
    return {"string": "''", "int": "0", "uint": "0u", "double": "0.0", "bool": "false"}.get(inner, "")


def quoted(text: str) -> str:
    """A literal as a text."""
    return f"'{text}'" if re.fullmatch(r"-?[\d.]+|true|false", text) else ""


def amount(text: str) -> str:
    """A quantity as the double that it means."""
    found = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)([KMGTPE]i)", text)
    if found:
        times = " * 1024.0" * ("KMGTPE".index(found[2][0]) + 1)
        return f"{float(found[1])}{times}"
    number = to_float(text)
    return "" if number is None or not isfinite(number) else f"{number:.1f}" if number == int(number) else repr(number)


def _first(table: Iterable[Cure], said: str, values: Mapping[str, str]) -> str:
    for pattern, template in table:
        if pattern.fullmatch(said) and (cure := filled(template, values)):
            return cure
    return ""


def _operands(function: str, types: list[str], place: Excerpt) -> dict[str, str]:
    left, right = place.left, place.right
    sign = "in" if function == "@in" else function.strip("_")
    then, otherwise = place.branches if function == "_?_:_" else ("", "")
    middle = _last_compared(left)
    return {
        "left": left,
        "right": right,
        "sign": sign,
        "target": parenthesised(left),
        "other": parenthesised(right),
        "item": item(right),
        "key": _key(_item_of(types[-1])),
        "first": left if middle else "",
        "middle": middle,
        "left_zero": zero_literal(types[0]),
        "right_zero": zero_literal(types[-1]),
        "left_double": _double(left),
        "right_double": _double(right),
        "left_amount": amount(_unquoted(left)),
        "right_amount": amount(_unquoted(right)),
        "left_unquoted": _whole(left),
        "right_unquoted": _whole(right),
        "left_quoted": quoted(left),
        "right_quoted": quoted(right),
        "left_truth": _truth(left),
        "right_truth": _truth(right),
        "then_truth": _truth(then),
        "otherwise_truth": _truth(otherwise),
        "left_optional": optional(left),
        "right_resource": right if re.search(r"allocatable|capacity|requests|limits", right) else "",
        "right_key": _key(types[-1]),
        "again": _again(left, right),
        "left_quotient": _quotient(left),
        "right_quotient": _quotient(right),
        "right_list": _list(right),
        "right_seconds": f"'{right}s'" if re.fullmatch(r"\d+", right) else "",
        "left_resource": left if re.search(r"allocatable|capacity|requests|limits", left) else "",
        "left_size": left.rpartition(".")[0] if re.search(r"\.(?:length|size|len|count)$", left) else "",
        "left_admission": ADMISSION if re.match(rf"request\.{_OF_ADMISSION}\b", left) else "",
        "left_read": left if re.search(r"\w", code(left).replace("_", "")) else "",
        "right_read": right if re.search(r"\w", code(right).replace("_", "")) else "",
        "left_there": presence(left),
        "left_absent": absence(left),
        "right_there": presence(right),
        "right_absent": absence(right),
        "then": then,
        "otherwise": otherwise,
        "then_double": _double(then),
        "otherwise_double": _double(otherwise),
    }


def _double(text: str) -> str:
    return f"{text}.0" if re.fullmatch(r"-?\d+", text) else ""


def _truth(text: str) -> str:
    """What stands for a truth, as one."""
    return {"true": "true", "false": "false", "1": "true", "0": "false"}.get((_unquoted(text) or text).lower(), "")


def _last_compared(text: str) -> str:
    """What the last comparison compares with, if nothing but that follows it."""
    at = max(map(text.rfind, "<>=!&|?"))
    return text[at + 1 :].strip() if at >= 0 and text[at] in "<>=!" else ""


def _again(left: str, right: str) -> str:
    """A comparison like the last one on the left, with another text."""
    if left[-1:] not in ("'", '"') or not _unquoted(right):
        return ""
    compared = left[: max(left.rfind(left[-1], 0, -1), 0)].rstrip()
    target = Excerpt(left, len(compared) - 2).target
    return f"{target} {compared[-2:]} {right}" if target and compared.endswith(("==", "!=")) else ""


def _quotient(text: str) -> str:
    """A division of ints as one of doubles."""
    whole, _, divisor = (part.strip() for part in text.partition("/"))
    return f"double({whole}) / {divisor}.0" if whole and re.fullmatch(r"\d+", divisor) else ""


def _list(text: str) -> str:
    """Words with commas between them, as a list."""
    words = _unquoted(text).split(",")
    return f"[{', '.join(repr(word.strip()) for word in words)}]" if len(words) > 1 else ""


def _unquoted(text: str) -> str:
    found = re.fullmatch(r"'([^'\\]*)'|\"([^\"\\]*)\"", text)
    return (found[1] or found[2] or "") if found else ""


def _whole(text: str) -> str:
    bare = _unquoted(text)
    return bare if re.fullmatch(r"-?\d+", bare) else ""


def presence(text: str) -> str:
    """How to ask whether there is something to read."""
    if found := re.fullmatch(r"(.+)\[\s*('[^']*'|\"[^\"]*\")\s*\]", text, re.DOTALL):
        return f"{found[2]} in {found[1]}"
    return f"has({text})" if re.fullmatch(r"[\w.\[\]]+\.\w+", text) else ""


def absence(text: str) -> str:
    """The same in brackets, if it needs them to be denied."""
    asked = presence(text)
    return f"({asked})" if " in " in asked else asked


def optional(text: str) -> str:
    """The same, read as something that may be absent."""
    holder, _, key = text.removesuffix("]").rpartition("[")
    if holder and text.endswith("]") and key.strip() and "]" not in key and not key.startswith("?"):
        return f"{holder}[?{key.lstrip()}]"
    found = re.fullmatch(r"([\w.\[\]]+)\.(\w+)", text)
    return f"{found[1]}.?{found[2]}" if found else ""


def _default(type_: str, given: str) -> str:
    inner = type_.removeprefix("optional_type(").removesuffix(")")
    made = {"string": quoted(given), "double": _double(given), "int": _whole(given)}.get(inner) or zero_literal(type_)
    return f"write `.orValue({made})`"


def _item_of(type_: str) -> str:
    """The message that a list holds."""
    found = re.fullmatch(r"list\((.+)\)", type_)
    name = "PlacedPod" if found and found[1] == "pod on a node" else found[1] if found else ""
    return name if name in messages() else ""


def _key(message: str) -> str:
    """The field that tells the items of a list apart."""
    fields = messages().get(message, {})
    return next((name for name in ("name", "key", "type", "uid") if fields.get(name) == "string"), "")
