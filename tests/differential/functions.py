"""The functions and operators of the language, by the type of what they give: a template, and the types it takes.

`T` is any type, the same in one line; `K` a type of keys; a type in brackets is a list, `?T` an optional.
"""

TABLE = """
bool: {0} == {1} | T T
bool: {0} != {1} | T T
bool: {0} == {1} | T T
bool: {0} == {0} | double
bool: {0} != {0} | double
bool: {0} == {0} | double
bool: {0} != {0} | double
bool: {0} == {1} | double double
bool: {0} != {0} | N
bool: {0} in [{0}] | N
bool: {0} < {1} | O O
bool: {0} <= {1} | O O
bool: {0} > {1} | O O
bool: {0} >= {1} | O O
bool: {0} && {1} | bool bool
bool: {0} || {1} | bool bool
bool: {0} && {1} && {2} | bool bool bool
bool: {0} || {1} || {2} | bool bool bool
bool: !{0} | bool
bool: {0} in {1} | T [T]
bool: {0} in {1} | K {K:T}
bool: {0}.hasValue() | ?T
bool: {0}.startsWith({1}) | string string
bool: {0}.endsWith({1}) | string string
bool: {0}.contains({1}) | string string
bool: {0}.matches({P}) | string
bool: matches({0}, {P}) | string
bool: bool({0}) | string
bool: bool({0}) | bool
bool: math.isNaN({0}) | double
bool: math.isInf({0}) | double
bool: math.isFinite({0}) | double
bool: sets.contains({0}, {1}) | [T] [T]
bool: sets.equivalent({0}, {1}) | [T] [T]
bool: sets.intersects({0}, {1}) | [T] [T]
int: {0} + {1} | int int
int: {0} - {1} | int int
int: {0} * {1} | int int
int: {0} / {1} | int int
int: {0} / {1} | int int
int: {0} % {1} | int int
int: -{0} | int
uint: {0} + {1} | uint uint
uint: {0} - {1} | uint uint
uint: {0} * {1} | uint uint
uint: {0} / {1} | uint uint
uint: {0} % {1} | uint uint
double: {0} + {1} | double double
double: {0} - {1} | double double
double: {0} * {1} | double double
double: {0} / {1} | double double
double: -{0} | double
string: {0} + {1} | string string
bytes: {0} + {1} | bytes bytes
duration: {0} + {1} | duration duration
duration: {0} - {1} | duration duration
duration: {0} - {1} | timestamp timestamp
timestamp: {0} + {1} | timestamp duration
timestamp: {0} + {1} | duration timestamp
timestamp: {0} - {1} | timestamp duration
[T]: {0} + {1} | [T] [T]
int: size({0}) | string
int: size({0}) | bytes
int: size({0}) | [T]
int: size({0}) | {K:T}
int: {0}.size() | string
int: {0}.size() | bytes
int: {0}.size() | [T]
int: {0}.size() | {K:T}
int: int({0}) | int
int: int({0}) | uint
int: int({0}) | double
int: int({0}) | string
int: int({0}) | timestamp
uint: uint({0}) | int
uint: uint({0}) | uint
uint: uint({0}) | double
uint: uint({0}) | string
double: double({0}) | int
double: double({0}) | uint
double: double({0}) | double
double: double({0}) | string
string: string({0}) | int
string: string({0}) | uint
string: string({0}) | double
string: string({0}) | bool
string: string({0}) | string
string: string({0}) | bytes
string: string({0}) | timestamp
string: string({0}) | duration
bytes: bytes({0}) | string
bytes: bytes({0}) | bytes
timestamp: timestamp({0}) | string
timestamp: timestamp({0}) | int
timestamp: timestamp({0}) | timestamp
duration: duration({0}) | string
duration: duration({0}) | duration
type: type({0}) | T
int: {0}.getFullYear() | timestamp
int: {0}.getMonth() | timestamp
int: {0}.getDate() | timestamp
int: {0}.getDayOfMonth() | timestamp
int: {0}.getDayOfWeek() | timestamp
int: {0}.getDayOfYear() | timestamp
int: {0}.getHours() | timestamp
int: {0}.getMinutes() | timestamp
int: {0}.getSeconds() | timestamp
int: {0}.getMilliseconds() | timestamp
int: {0}.getHours() | duration
int: {0}.getMinutes() | duration
int: {0}.getSeconds() | duration
int: {0}.getMilliseconds() | duration
string: {0}.charAt({1}) | string small
int: {0}.indexOf({1}) | string string
int: {0}.indexOf({1}, {2}) | string string small
int: {0}.lastIndexOf({1}) | string string
int: {0}.lastIndexOf({1}, {2}) | string string small
string: {0}.join() | [string]
string: {0}.join({1}) | [string] string
string: {0}.lowerAscii() | string
string: {0}.upperAscii() | string
string: {0}.replace({1}, {2}) | string string string
string: {0}.replace({1}, {2}, {3}) | string string string small
string: {0}.reverse() | string
[string]: {0}.split({1}) | string string
[string]: {0}.split({1}, {2}) | string string small
string: {0}.substring({1}) | string small
string: {0}.substring({1}, {2}) | string small small
string: {0}.trim() | string
string: regex.replace({0}, {P}, {1}) | string string
string: regex.replace({0}, {P}, {1}, {2}) | string string tiny
ip: ip({0}) | string
ip: {0}.ip() | cidr
bool: isIP({0}) | string
bool: ip.isCanonical({0}) | string
bool: isCIDR({0}) | string
bool: isSemver({0}) | string
bool: isSemver({0}, {1}) | string bool
bool: {0}.isUnspecified() | ip
bool: {0}.isLoopback() | ip
bool: {0}.isLinkLocalMulticast() | ip
bool: {0}.isLinkLocalUnicast() | ip
bool: {0}.isGlobalUnicast() | ip
bool: {0}.containsIP({1}) | cidr ip
bool: {0}.containsIP({1}) | cidr string
bool: {0}.containsCIDR({1}) | cidr cidr
bool: {0}.containsCIDR({1}) | cidr string
bool: {0}.isGreaterThan({1}) | semver semver
bool: {0}.isLessThan({1}) | semver semver
int: {0}.compareTo({1}) | semver semver
int: {0}.major() | semver
int: {0}.minor() | semver
int: {0}.patch() | semver
int: {0}.family() | ip
int: {0}.prefixLength() | cidr
string: string({0}) | ip
string: string({0}) | cidr
cidr: cidr({0}) | string
cidr: {0}.masked() | cidr
semver: semver({0}) | string
semver: semver({0}, {1}) | string bool
?string: regex.extract({0}, {P}) | string
[string]: regex.extractAll({0}, {P}) | string
N: math.greatest({0}, {1}) | N N
N: math.least({0}, {1}) | N N
N: math.greatest({0}) | [N]
N: math.least([{0}, {1}, {2}]) | N N N
N: math.abs({0}) | N
N: math.sign({0}) | N
double: math.ceil({0}) | double
double: math.floor({0}) | double
double: math.round({0}) | double
double: math.trunc({0}) | double
double: math.sqrt({0}) | N
[int]: lists.range({0}) | tiny
[T]: {0}.slice({1}, {2}) | [T] small small
[T]: {0}.distinct() | [T]
[T]: {0}.reverse() | [T]
[O]: {0}.sort() | [O]
[T]: {0}.flatten() | [[T]]
?T: {0}.first() | [T]
?T: {0}.last() | [T]
T: {0}[{1}] | [T] small
T: {0}[{1}] | {K:T} K
T: {0}.a | {string:T}
bool: has({0}.a) | {string:T}
?T: {0}.?a | {string:T}
?T: {0}.?a | ?{string:T}
?T: {0}.b | ?{string:T}
bool: has({0}.a) | ?{string:T}
?T: {0}[?{1}] | {K:T} K
?T: {0}[?{1}] | [T] small
?T: {0}[?{1}] | ?{K:T} K
?T: {0}[?{1}] | ?[T] small
?T: optional.of({0}) | T
?T: optional.ofNonZeroValue({0}) | T
?T: optional.none() |
?T: {0}.or({1}) | ?T ?T
T: {0}.orValue({1}) | ?T T
T: {0}.value() | ?T
[T]: [{0}, ?{1}] | T ?T
[T]: [?{0}] | ?T
{string:T}: {{'a': {0}, ?'b': {1}}} | T ?T
{K:T}: {{?{0}: {1}}} | K ?T
T: {0} ? {1} : {2} | bool T T
double: data.load |
"""
