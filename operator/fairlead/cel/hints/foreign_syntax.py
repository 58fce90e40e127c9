"""What people write who come from other languages, and what it is called here.

In what a table says of a call, `{target}` is what it is called on, `{arguments}` what is in its brackets, `{first}` and
`{rest}` the first of these and the others.
"""

import re
from collections.abc import Mapping
from typing import Final

NO_VALUE: Final = "ask `has(...)` whether there is a field, `'...' in ...` whether there is a key"
_REQUEST: Final = "what the pod requests is `request`, as in `request['cpu']`"

VARIABLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("True", "TRUE"), "write `true`"),
    **dict.fromkeys(("False", "FALSE"), "write `false`"),
    **dict.fromkeys(("None", "nil", "undefined", "NULL", "Null", "none"), NO_VALUE),
    **dict.fromkeys(("object", "self"), "the pod is `pod`, its node `node`"),
    **dict.fromkeys(("oldObject", "oldSelf"), "a rule sees things as they are now, in `pod` and `node`"),
    "params": "what the policy itself declares is read as `variables...` and `data...`",
    **dict.fromkeys(("this", "input", "context"), "the pod is `pod`, its node `node`"),
    "Values": "let Helm render the file first",
    "authorizer": "a rule sees no users and no permissions",
    **dict.fromkeys(("Date", "time", "datetime"), "the moment of the decision is `now`"),
    **dict.fromkeys(("labels", "annotations", "metadata"), "write `node.metadata` or `pod.metadata` before it"),
    **dict.fromkeys(("spec", "status"), "write `node.` or `pod.` before it"),
    **dict.fromkeys(("containers", "container"), "write `pod.spec.containers.exists(c, ...)`"),
    **dict.fromkeys(("requests", "resources", "limits"), _REQUEST),
    **dict.fromkeys(("cpu", "memory"), "what is left on the node is `free`, as in `free['cpu']`"),
    **dict.fromkeys(("capacity", "available"), "what is left on the node is `free`, all that it has `allocatable`"),
    **dict.fromkeys(("nodes", "n"), "a rule is asked for one node at a time: `node`"),
}

_SUM: Final = "nothing adds up a list; what all pods on the node request is `requested`, as in `requested['cpu']`"
_NO_LIBRARY: Final = "of Kubernetes' own libraries there is only the one for quantities"

FOREIGN_FUNCTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("len", "length", "count"), "write `size({arguments})`"),
    **dict.fromkeys(("str", "String", "toString"), "write `string({arguments})`"),
    **dict.fromkeys(("float", "Number", "parseFloat", "number"), "write `double({arguments})`"),
    **dict.fromkeys(("parseInt", "Int", "integer", "long"), "write `int({arguments})`"),
    **dict.fromkeys(("min", "math.min"), "write `math.least({arguments})`"),
    **dict.fromkeys(("max", "math.max"), "write `math.greatest({arguments})`"),
    "sprintf": "write `{first}.format([{rest}])`",
    **dict.fromkeys(("default", "coalesce"), "write `{first_optional}.orValue({rest})`"),
    "age": "write `now - {first}.metadata.creationTimestamp`",
    **dict.fromkeys(("variables", "data"), "an entry is read as `{name}...`, without brackets"),
    "strings.HasPrefix": "write `{first}.startsWith({rest})`",
    "strings.HasSuffix": "write `{first}.endsWith({rest})`",
    "strings.Contains": "write `{first}.contains({rest})`",
    **dict.fromkeys(("pow", "math.pow"), "there are no powers: multiply"),
    **dict.fromkeys(("isset", "defined", "exists"), "write `has({arguments})`"),
    **dict.fromkeys(("now", "time.now"), "it is a value: write `now`"),
    **dict.fromkeys(("any", "some"), "write `{first}.exists(x, ...)`"),
    "not": "write `!({arguments})`",
    "sum": _SUM,
    **dict.fromkeys(
        ("cidr", "ip", "isIP", "isCIDR", "url", "isURL", "semver", "isSemver"),
        _NO_LIBRARY,
    ),
}

METHODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("length", "len", "count"), "write `{target}.size()`"),
    "hasLabel": "write `{arguments} in {target}.metadata.labels`",
    "getLabel": "write `{target}.metadata.labels[?{first}].orValue('')`",
    "trimPrefix": "write `{target}.replace({arguments}, '')`",
    **dict.fromkeys(("like",), "write `{target}.contains({arguments})`"),
    "subtract": "write `{target} - {arguments}`",
    "age": "write `now - {target}`",
    **dict.fromkeys(("unix", "getTime", "toInt"), "write `int({target})`"),
    "between": "compare with both ends, with `&&` between",
    **dict.fromkeys(("isEmpty", "empty"), "write `{target}.size() == 0`"),
    "get": "write `{target}[?{first}].orValue({rest})`",
    **dict.fromkeys(("any", "some"), "write `{target}.exists({arguments})`"),
    "every": "write `{target}.all({arguments})`",
    **dict.fromkeys(("where", "select"), "write `{target}.filter({arguments})`"),
    "find": "of a text `regex.extract({target}, {arguments})`, of a list `{target}.filter({arguments})`",
    "findAll": "write `regex.extractAll({target}, {arguments})`",
    **dict.fromkeys(("hour", "hours"), "write `{target}.getHours()`"),
    **dict.fromkeys(("minute", "minutes"), "write `{target}.getMinutes()`"),
    **dict.fromkeys(("second", "seconds"), "write `{target}.getSeconds()`"),
    **dict.fromkeys(("day", "weekday"), "write `{target}.getDayOfWeek()`, which is 0 on Sundays"),
    "month": "write `{target}.getMonth()`, which is 0 in January",
    "year": "write `{target}.getFullYear()`",
    "includes": "of a text `{target}.contains({arguments})`, of a list `{arguments} in {target}`",
    **dict.fromkeys(
        ("has", "containsKey", "hasKey", "has_key", "hasOwnProperty"),
        "write `{arguments} in {target}`",
    ),
    **dict.fromkeys(("keys", "items", "entries"), "leave it out: macros loop over the keys of a map, `{target}`"),
    "values": "write `{target}.exists(k, v, ...)`, where `v` is the value",
    **dict.fromkeys(("toLowerCase", "toLower", "lower", "lowercase"), "write `{target}.lowerAscii()`"),
    **dict.fromkeys(("toUpperCase", "toUpper", "upper", "uppercase"), "write `{target}.upperAscii()`"),
    **dict.fromkeys(("strip", "trimSpace"), "write `{target}.trim()`"),
    **dict.fromkeys(("startswith", "hasPrefix"), "write `{target}.startsWith({arguments})`"),
    **dict.fromkeys(("endswith", "hasSuffix"), "write `{target}.endsWith({arguments})`"),
    **dict.fromkeys(("match", "test", "search", "regex"), "write `{target}.matches({arguments})`"),
    "toString": "write `string({target})`",
    **dict.fromkeys(("equals", "eq"), "write `{target} == {arguments}`"),
    **dict.fromkeys(("orElse", "getOrElse", "default"), "write `{target}.orValue({arguments})`"),
    "isPresent": "write `{target}.hasValue()`",
    **dict.fromkeys(("cmp", "Cmp"), "write `{target}.compareTo({arguments})`"),
    "min": "write `math.least({target})`",
    "max": "write `math.greatest({target})`",
    **dict.fromkeys(("sum", "reduce", "avg", "average"), _SUM),
}

# Functions that take one value, and are no methods.
CONVERSIONS: Final = ("bool", "bytes", "double", "duration", "int", "quantity", "string", "timestamp", "type", "uint")

RESERVED: Final[Mapping[str, str]] = {
    "namespace": "the pod's namespace is `namespaceObject`",
    "if": "write `{condition} ? {then} : {otherwise}`",
    **dict.fromkeys(("var", "let", "const"), "the policy's own are read as `variables.name`"),
}

FOREIGN_MACROS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("exists", "all", "exists_one", "existsOne", "filter"), "write `{target}.{name}({item}, ...)`"),
    "map": "write `{target}.map({item}, ...)`",
    "sortBy": "write `{target}.sortBy({item}, ...)`",
    "has": "write `has({target}...)`",
}

_TEXT: Final = "a text stands between two `'`"

# A pattern that fits nothing that is right, what is said where it fits, and the cure.
FOREIGN_PATTERNS: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
    (re.compile(pattern), fault, cure)
    for pattern, fault, cure in (
        (r"\{\{", "`{{` is a template that nobody has filled in", "let Helm render the file first"),
        (r"\$[{(]?", "there is no `{0}`", "variables are named as they are: leave it out"),
        (r"[\u2018-\u201e\xab\xbb]", "{character} is no quote", _TEXT),
        (r"`", "{character} is no quote", _TEXT),
        (r"[\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]", "{character} is no space", "type a plain space"),
        (r"[\u2010-\u2015\u2212]", "{character} is no minus", "type a plain `-`"),
        (r"(?<![.\w])(?i:not\s+in)\b", "there is no `{0}`", "write `!({left} in {right})`"),
        (r"(?<![.\w])(?:and|AND)(?!\w)", "there is no `{0}`", "write `&&`"),
        (r"(?<![.\w])(?:or|OR)(?!\w)", "there is no `{0}`", "write `||`"),
        (r"(?<![.\w])(?:not|NOT)(?!\w)", "there is no `{0}`", "write `!`"),
        (r"(?<![.\w])is\s+not\s+(?:None|null|nil)\b", "there is no `{0}`", "write `{there}`"),
        (r"(?<![.\w])is\s+(?:None|null|nil)\b", "there is no `{0}`", "write `!{absent}`"),
        (r"(?<![.\w])is\s+not(?!\w)", "there is no `{0}`", "write `!=`"),
        (r"(?<![.\w])is(?!\w)", "there is no `{0}`", "write `==`"),
        (r"(?<![.\w])(?:if|then|else)(?!\w)", "there is no `{0}`", "write `... ? ... : ...`"),
        (r"(?<![.\w])(?:return|function)(?!\w)", "there is no `{0}`", "an expression is its value"),
        (r"(?<!\d)\d++\s*+\.\.++\s*+\d++", "there is no `..`", "compare with both ends, with `&&` between"),
        (r"(?<![.\w])between(?!\w)", "there is no `{0}`", "compare with both ends, with `&&` between"),
        (r"\[\s*\*\s*\]", "there is no `[*]`", "ask all items: `.exists(x, ...)`"),
        (r"(?<=\()\s*\w+\s*:", "no `:` stands here", "a comma stands in its place: `{name}, ...`"),
        (r"(?<=\bin)\s+_+\s*,", "a list stands in square brackets", "write `[...]`"),
        (r"\u2265", "there is no `{0}`", "write `>=`"),
        (r"\u2264", "there is no `{0}`", "write `<=`"),
        (r"\u2260", "there is no `{0}`", "write `!=`"),
        (r"\xd7", "there is no `{0}`", "write `*`"),
        (r"(?<![.\w])(?:let|var|const)(?!\w)", "there is no `{0}`", "name a value under the policy's variables"),
        (
            r"(?<![.\w])for\s+(\w+)\s+in\s+([\w.]+)(?:\s+if\b)?",
            "there is no `for`",
            "write `{2}.exists({1}, ...)`",
        ),
        (r"(?<![.\w])typeof(?!\w)", "there is no `{0}`", "write `type(...)`"),
        (r"(?<![.\w])new\s", "there is no `{0}`", "the moment of the decision is `now`"),
        (r"(?<=[(,])\s*/[^/\n]+/", "a pattern is a text", "write `'...'`"),
        (r"(?<=\bin)\s*+[({][^(){}:,]*+,[^(){}:]*+[)}]", "a list stands in square brackets", "write `[...]`"),
        (r"(?<=[\w\])])\[\s*+(-?\d*+)\s*+:\s*+(-?\d*+)\s*+\]", "there are no slices", "write `.substring(...)`"),
        (r"(?<![\w.])\d+(?:_\d+)+", "`{0}` is no number", "write `{plain}`"),
        (r"(?<![\w.])(\d+(?:\.\d+)?)\s*%(?!\s*[\w(])", "there is no percent", "write `{share}`, or `{1}.0` of 100"),
        (r"(?<![.\w])lambda(?!\w)", "there is no `{0}`", "write `.exists(p, ...)`"),
        (
            r"(?<=[(,])\s*+(?:\(\s*+)?\w++\s*+(?:\)\s*+)?(?:=>|->)",
            "there is no arrow",
            "a comma stands in its place: `{name}, ...`",
        ),
        (r"===|=>=?(?==)", "there is no `{0}`", "write `==`"),
        (r"!==", "there is no `{0}`", "write `!=`"),
        (r"<>", "there is no `{0}`", "write `!=`"),
        (r"=<", "there is no `{0}`", "write `<=`"),
        (r"=>", "there is no `{0}`", "write `>=`"),
        (r"=~", "there is no `{0}`", "write `{target}.matches({pattern})`"),
        (r"!~", "there is no `{0}`", "write `!{target}.matches({pattern})`"),
        (r"\?\?", "there is no `{0}`", "write `{optional}.orValue({right})`"),
        (r"(?<=[\w\])])\?\.", "there is no `{0}`", "write `.?`"),
        (r"(?<=[\w\])])\?\[", "there is no `{0}`", "write `[?`"),
        (r"(?<![=!<>]):=|(?<![=!<>])=(?!=)", "there is no `{0}`", "`==` compares"),
        (r"(?<!&)&(?!&)", "there is no `{0}`", "write `&&`"),
        (r"(?<!\|)\|(?!\|)", "there is no `{0}`", "write `||`"),
        (r"\*\*|\^", "there is no `{0}`", "there are no powers: multiply"),
        (r"\+\+|--(?=\s*$|\s*[^\w\s(.-])", "there is no `{0}`", "nothing can be changed here"),
        (r"/\*", "there is no `{0}`", "a comment begins with `//`"),
        (r"\.(?=\[)", "no `.` stands before a `[`", "leave it out"),
        (r"->|::", "there is no `{0}`", "write `.`"),
        (r"#", "there is no `{0}`", "a comment begins with `//`"),
        (r";", "there is no `{0}`", "an expression is one value: leave it out, or join conditions with `&&`"),
        (r"(?<![\w.])(\d+(?:\.\d+)?)([KMGTPE]i?B?|k|m|B|ms|s|min|h|d)\b", "a number has no unit", ""),
        (r"(?<![\w.])\d+\.(?!\d)", "`{0}` is no number", "write `{0}0`"),
        (r"(?<![.\w])(?i:like|contains)(?=\s+[\w(])", "`{0}` is no operator", "write `{target}.contains({right})`"),
        (
            r"(?<![.\w])(?:startsWith|endsWith|matches)(?=\s+[\w(])",
            "`{0}` is no operator",
            "write `{target}.{0}({right})`",
        ),
        (
            r"(?<![\w.])(?!0x[0-9a-fA-F]+u?\b|\d+u\b|\d+(?:\.\d+)?[eE][-+]?\d+)\d+[A-Za-z]\w*",
            "`{0}` is no number",
            "a text stands in quotes: `'{0}'`",
        ),
    )
)


MACRO_NAMES: Final = (
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "has",
    "map",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "cel.bind",
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
