"""Which types do not go together, and what makes them.

A line fits by the types, as the engine says them; it is used if all that its cure names can be taken from the source.
Names in braces stand for parts of the source: `suggestions` says which there are.
"""

import re
from typing import Final

Cure = tuple[re.Pattern[str], str]
"""What fits the types, and what to write."""


def _table(*rows: tuple[str, str]) -> tuple[Cure, ...]:
    return tuple((re.compile(types), cure) for types, cure in rows)


_ORDER = r"_(?:<|<=|>|>=)_"
_SAME = r"_[=!]=_"
_COMPARED = r"_(?:<|<=|>|>=|==|!=)_"
_COUNTED = r"_[-+*/%]_"
_NUMBER = r"(?:int|uint|double)"
_ANY = r"_[^(]+_"
_AND_MORE = r"(?>.*?\), )"  # up to the end of a type with brackets

# An operator and its types, and the cure.
OPERATORS: Final = _table(
    (rf"{_SAME}\(bool, (?:string|int)\)", "write `{right_truth}`"),
    (rf"{_SAME}\((?:string|int), bool\)", "write `{left_truth}`"),
    (rf"{_SAME}\(string, [A-Z]\w+\)", "write `{other}.{right_key}`"),
    (rf"{_COMPARED}\(bool, {_NUMBER}\)", "write `{first} && {middle} {sign} {right}`"),
    (rf"{_ANY}\(optional_type\((?:string|{_NUMBER}|bool)\), .*\)", "write `{target}.orValue({left_zero})`"),
    (rf"{_ANY}\(.*, optional_type\((?:string|{_NUMBER}|bool)\)\)", "write `{other}.orValue({right_zero})`"),
    (rf"{_ANY}\(double, int\)", "`/` of ints drops the rest: write `{right_quotient}`"),
    (rf"{_ANY}\(int, double\)", "`/` of ints drops the rest: write `{left_quotient}`"),
    (rf"{_ANY}\(double, u?int\)", "write `{right_double}`"),
    (rf"{_ANY}\(u?int, double\)", "write `{left_double}`"),
    (rf"{_ANY}\(double, u?int\)", "write `double({right})`"),
    (rf"{_ANY}\(u?int, double\)", "write `double({left})`"),
    (r"_\+_\(list\((\w+)\), \1\)", "write `[{right}]`"),
    (r"_\+_\(string, int\)", "write `quantity({left_resource}).add({right})`"),
    (r"_-_\(string, int\)", "write `quantity({left_resource}).sub({right})`"),
    (r"_%_\(string, list\(.*\)\)", "write `{target}.format({right})`"),
    (r"_%_\(string, .*\)", "write `{target}.format([{right}])`"),
    (r"_\+_\(string, .*\)", "write `string({right})`"),
    (r"_\+_\(.*, string\)", "write `string({left})`"),
    (rf"{_ANY}\(double, string\)", "write `{right_amount}`"),
    (rf"{_ANY}\(string, double\)", "write `{left_amount}`"),
    (rf"{_ANY}\(u?int, string\)", "write `{right_unquoted}`"),
    (rf"{_ANY}\(string, u?int\)", "write `{left_unquoted}`"),
    (rf"{_SAME}\(string, (?:{_NUMBER}|bool)\)", "write `{right_quoted}`"),
    (rf"{_SAME}\((?:{_NUMBER}|bool), string\)", "write `{left_quoted}`"),
    (
        rf"{_ORDER}\(string, {_NUMBER}\)",
        "write `quantity({left_resource}).compareTo(quantity({right_quoted})) {sign} 0`",
    ),
    (rf"{_ANY}\(string, int\)", "write `{left_size}.size()`"),
    (rf"{_ANY}\(double, string\)", "{left_admission}"),
    (rf"{_ANY}\(double, string\)", "write `quantity({right_resource}).asApproximateFloat()`"),
    (rf"{_ANY}\(string, int\)", "write `int({left_read})`"),
    (rf"{_ANY}\(string, double\)", "write `double({left_read})`"),
    (rf"{_ANY}\(int, string\)", "write `int({right_read})`"),
    (rf"{_ANY}\(double, string\)", "write `double({right_read})`"),
    (rf"{_ANY}\((?:string, {_NUMBER}|{_NUMBER}, string)\)", "compare a number with a number, a text with a text"),
    (r"_>_\(Quantity, Quantity\)", "write `{target}.isGreaterThan({right})`"),
    (r"_<_\(Quantity, Quantity\)", "write `{target}.isLessThan({right})`"),
    (rf"{_COMPARED}\(Quantity, Quantity\)", "write `{target}.compareTo({right}) {sign} 0`"),
    (r"_\+_\(Quantity, (?:Quantity|int)\)", "write `{target}.add({right})`"),
    (r"_-_\(Quantity, (?:Quantity|int)\)", "write `{target}.sub({right})`"),
    (
        rf"{_COUNTED}\(Quantity, Quantity\)",
        "write `{target}.asApproximateFloat() {sign} {other}.asApproximateFloat()`",
    ),
    (rf"{_COMPARED}\(string, Quantity\)", "write `quantity({left}).compareTo({right}) {sign} 0`"),
    (rf"{_COMPARED}\(Quantity, string\)", "write `{target}.compareTo(quantity({right})) {sign} 0`"),
    (rf"{_ANY}\(Quantity, double\)", "write `{target}.asApproximateFloat()`"),
    (rf"{_ANY}\(double, Quantity\)", "write `{other}.asApproximateFloat()`"),
    (rf"{_ANY}\(Quantity, int\)", "write `{target}.asApproximateFloat() {sign} {right_double}`"),
    (rf"{_ANY}\(Quantity, int\)", "write `{target}.asInteger()`"),
    (rf"{_ANY}\(int, Quantity\)", "write `{other}.asInteger()`"),
    (rf"{_COMPARED}\(timestamp, string\)", "write `timestamp({right})`"),
    (rf"{_COMPARED}\(string, timestamp\)", "write `timestamp({left})`"),
    (r"_[-+]_\(timestamp, (?:int|double)\)", "write `duration({right_seconds})`"),
    (rf"{_ORDER}\(timestamp, duration\)", "write `now - {left}` for an age"),
    (rf"{_COMPARED}\(duration, (?:int|double)\)", "write `duration({right_seconds})`"),
    (rf"{_ANY}\((?:duration|timestamp), string\)", "write `duration({right})`"),
    (rf"{_ORDER}\(duration, timestamp\)", "write `now - {right}` for an age"),
    (r"_\*_\(duration, .*\)|_\*_\(.*, duration\)", "durations are added and compared; write the product out"),
    (
        rf"{_ANY}\((?:timestamp, .*|.*, timestamp)\)",
        "a timestamp compares with timestamp('...'), and minus a timestamp gives a duration",
    ),
    (rf"{_ANY}\((?:duration, .*|.*, duration)\)", "a duration is written duration('90s')"),
    (r"_!=_\(.*, null\)", "what is absent is not null: write `{left_there}`"),
    (r"_==_\(.*, null\)", "what is absent is not null: write `!{left_absent}`"),
    (r"_!=_\(null, .*\)", "what is absent is not null: write `{right_there}`"),
    (r"_==_\(null, .*\)", "what is absent is not null: write `!{right_absent}`"),
    (rf"{_ANY}\(map\(string, double\), .*\)", "write `{target}['cpu']` for one of them"),
    (rf"{_COMPARED}\((?:list|map)\(.*\), int\)", "write `{target}.size()`"),
    (r"_==_\(list\(string\), string\)", "write `{right} in {left}`"),
    (r"_!=_\(list\(string\), string\)", "write `!({right} in {left})`"),
    (r"_==_\(string, list\(string\)\)", "write `{left} in {right}`"),
    (r"_!=_\(string, list\(string\)\)", "write `!({left} in {right})`"),
    (r"@in\(string, string\)", "write `{left} in {right_list}`"),
    (r"@in\(string, string\)", "write `{other}.contains({left})`"),
    (r"@in\((?>.*?, optional_type\(list\().*\)\)\)", "write `{other}.orValue([])`"),
    (rf"@in\((?:{_NUMBER}|bool), (?:list|map)\(string.*\)\)", "write `{left_quoted}`"),
    (r"@in\(string, list\(.*\)\)", "write `{other}.exists({item}, {item}.{key} == {left})`"),
    (r"-_\((?:bool|string|list.*|map.*)\)", "it is a sign here, and begins no item of a list: leave it out"),
    (r"!_\(string\)", "write `{right} != 'true'`"),
    (r"!_\((?:int|uint)\)", "write `{right} == 0`"),
    (r"!_\(double\)", "write `{right} == 0.0`"),
    (r"!_\((?:list|map)\(.*\)\)", "write `{other}.size() == 0`"),
    (r"!_\(optional_type\(bool\)\)", "write `!{other}.orValue(false)`"),
    (r"!_\(optional_type\(.*\)\)", "write `!{other}.hasValue()`"),
    (r"_(?:&&|\|\|)_\(optional_type\(bool\), .*\)", "write `{target}.orValue(false)`"),
    (r"_(?:&&|\|\|)_\(bool, optional_type\(bool\)\)", "write `{other}.orValue(false)`"),
    (r"_\|\|_\(bool, string\)", "write `{again}`"),
    (r"_\|\|_\(string, string\)", "write `{left_optional}.orValue({right})`"),
    (r"_(?:&&|\|\|)_\(bool, string\)", "write `{right} == '...'`"),
    (r"_(?:&&|\|\|)_\(string, .*\)", "write `{left} == '...'`"),
    (r"_(?:&&|\|\|)_\(bool, (?:list|map)\(.*\)\)", "write `{other}.size() > 0`"),
    (rf"_(?:&&|\|\|)_\((?:list|map)\({_AND_MORE}.*\)", "write `{target}.size() > 0`"),
    (r"(?:!_|_&&_|_\|\|_)\(.*\)", "compare it with something"),
    (r"_\?_:_\(bool, (?:int, double)\)", "write `{then_double}`"),
    (r"_\?_:_\(bool, (?:double, int)\)", "write `{otherwise_double}`"),
    (r"_\?_:_\(bool, (?:int, double)\)", "write `double({then})`"),
    (r"_\?_:_\(bool, (?:double, int)\)", "write `double({otherwise})`"),
    (r"_\?_:_\(bool, bool, (?:string|int)\)", "write `{otherwise_truth}`"),
    (r"_\?_:_\(bool, (?:string|int), bool\)", "write `{then_truth}`"),
    (r"_\?_:_\(bool, string, .*\)", "write `string({otherwise})`"),
    (r"_\?_:_\(bool, .*, string\)", "write `string({then})`"),
    (r"_\?_:_\((?:string|int|double|uint), .*\)", "compare `{left}` with something"),
)

INDICES: Final = _table(
    (
        r"list\((?:Node|Pod)Condition\), string",
        "write `{target}.exists({item}, {item}.type == {index} && {item}.status == 'True')`",
    ),
    (r"list\(\w+\), string", "write `{target}.exists({item}, {item}.{key} == {index} ...)`"),
    (r"list\(string\), string", "write `{index} in {target}`"),
    (r"map\(string, .*\), int", "write `{target}['{index}']`"),
    (r"string, int", "write `{target}.charAt({digits})`"),
    (r"string, .*", "a text has no keys; a part of it is `{target}.substring(...)`"),
    (r"[A-Z]\w+, string", "write `{target}.{bare}`"),
)

METHODS: Final = _table(
    (r"orValue\(optional_type\((?:string|double|int|bool)\), .*\)", "the default is of the same type: {default}"),
    (r"orValue\((?!optional).*\)", "write `{target_optional}.orValue({arguments})`"),
    (r"(?:hasValue|value|or|optMap)\((?!optional).*\)", "write `{target_optional}.{name}({arguments})`"),
    (r"contains\(list\(.*\), string\)", "write `{target}.exists({item}, {item}.{key} == {arguments})`"),
    (rf"contains\((?:list|map)\({_AND_MORE}.*\)", "write `{arguments} in {target}`"),
    (r"(?:int|double|uint|quantity)\(optional_type\(string\)\)", "write `{argument}.orValue('0')`"),
    (r"(?:asInteger|asApproximateFloat|sign|isInteger)\(string\)", "write `quantity({target}).{name}()`"),
    (r"(?:asInteger|asApproximateFloat|sign|isInteger)\(double\)", "it is a number already: write `{target}`"),
    (r"(?:int|double)\(Quantity\)", "write `{argument}.asApproximateFloat()`"),
    (r"sort\(list\((?!string|int|uint|double).*\)\)", "write `{target}.sortBy({item}, ...)`"),
    (r"value\(Quantity\)", "write `{target}.asApproximateFloat()`"),
    (r"\w+\(optional_type\((?:string|int|double)\)(?:, .*)?\)", "write `{target}.orValue({target_zero})`"),
    (r"(?:isGreaterThan|isLessThan|compareTo|add|sub)\(Quantity, string\)", "write `quantity({arguments})`"),
    (r"isGreaterThan\(double, Quantity\)", "write `{target} > {argument}.asApproximateFloat()`"),
    (r"isLessThan\(double, Quantity\)", "write `{target} < {argument}.asApproximateFloat()`"),
    (r"(?:isGreaterThan|isLessThan|compareTo)\(string, Quantity\)", "write `quantity({target})`"),
    (r"(?:isGreaterThan|isLessThan|compareTo)\(Quantity, (?:int|double)\)", "write `quantity({arguments_quoted})`"),
    (r"quantity\((?:int|double)\)", "write `quantity({arguments_quoted})`"),
    (r"format\(string, (?!list).*\)", "write `{target}.format([{arguments}])`"),
    (r"(?:is)?[qQ]uantity\(double\)", "it is a number already: compare it with one"),
    (r"(?:contains|startsWith|endsWith|matches)\(string, (?:int|double|bool)\)", "write `string({arguments})`"),
    (r"\w+\((?:int|double|bool), string\)", "write `string({target})`"),
    (r"join\(list\((?!string).*\)", "write `{target}.map(x, string(x))`"),
)

# What is wanted, what is given, and the cure.
RESULTS: Final = _table(
    (r"a bool, optional_type<bool>", "write `{held}.orValue(false)`"),
    (r"a bool, optional_type<.*>", "write `{held}.hasValue()`"),
    (r"a bool, (?:list|map)<.*>", "compare it with something: `{held}.size() > 0`"),
    (r"a bool, string", "compare it with something: `{side} == '...'`"),
    (r"a bool, (?:int|uint)", "compare it with something: `{side} > 0`"),
    (r"a bool, double", "compare it with something: `{side} > 0.0`"),
    (r"a bool, kubernetes.Quantity", "compare it with something: `{held}.isGreaterThan(quantity('0'))`"),
    (r"a bool, .*", "compare it with something"),
    (r"a number, bool", "write `{test} ? 100.0 : 0.0`"),
    (r"a number, string", "write `double({read})`"),
    (r"a number, optional_type<(?:int|uint|double)>", "write `{held}.orValue({zero})`"),
    (r"a number, kubernetes.Quantity", "write `{held}.asApproximateFloat()`"),
    (r"a number, duration", "write `{held}.getSeconds()`"),
    (r"a number, map<string, double>", "write `{held}['cpu']` for one of them"),
    (r"a number, (?:list|map)<.*>", "write `{held}.size()`"),
    (r"a number, .*", "use `... ? 100.0 : 0.0`, or `double(...)`"),
    (r"a string, optional_type<string>", "write `{held}.orValue('')`"),
    (r"a string, list<string>", "write `{held}.join(',')`"),
    (r"a string, (?:int|uint|double|bool|timestamp|duration)", "write `string({text})`"),
    (r"a string, .*", "write one of its fields, or a text"),
)
