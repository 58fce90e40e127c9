"""What is said to those who write another language: each row is what they wrote, what they read, and what they get.

A cure is copied without a thought: all that it shows in backquotes must stand in an expression that the checker takes.
"""

import re

import pytest

from fairlead.cel.check import BOOL, NUMBER, STRING, Environment, ExpressionError, Want, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.hints.excerpt import Excerpt, parenthesised
from fairlead.cel.syntax.ast import Type

RULES = Environment(
    RULE,
    {"wants": Type("string"), "zones": Type("list", (Type("string"),)), "x": Type("string")},
    ("load", "rackPower", "load1"),
)

# expression, what is said, and the mended expressions
Row = tuple[str, str, *tuple[str, ...]]

AMOUNTS: dict[str, Row] = {
    "bytes as a text": (
        "free['memory'] > '16Gi'",
        "16: `>` does not take double and string; write `16.0 * 1024.0 * 1024.0 * 1024.0`",
        "free['memory'] > 16.0 * 1024.0 * 1024.0 * 1024.0",
    ),
    "bytes as a text, on the left": (
        "'1.5G' < free.memory",
        "8: `<` does not take string and double; write `1500000000.0`",
        "1500000000.0 < free.memory",
    ),
    "cores as a text": (
        "free.cpu >= '500m'",
        "10: `>=` does not take double and string; write `0.5`",
        "free.cpu >= 0.5",
    ),
    "a number with a unit": (
        "free.memory > 16Gi",
        (
            "15: syntax error: a number has no unit; write `16.0 * 1024.0 * 1024.0 * 1024.0`, or "
            "`quantity('16Gi')` beside a quantity"
        ),
        "free.memory > 16.0 * 1024.0 * 1024.0 * 1024.0",
        "quantity('16Gi').sign() > 0",
    ),
    "a unit that no quantity has": (
        "free.memory > 16GB",
        ("15: syntax error: a number has no unit; write `16000000000.0`, or `quantity('16G')` beside a quantity"),
        "free.memory > 16000000000.0",
        "quantity('16G').sign() > 0",
    ),
    "millicores": (
        "free.cpu > 500m",
        "12: syntax error: a number has no unit; write `0.5`, or `quantity('500m')` beside a quantity",
        "free.cpu > 0.5",
        "quantity('500m').sign() > 0",
    ),
    "quantities with an operator": (
        "quantity('1') > quantity('2')",
        "15: `>` does not take quantity and quantity; write `quantity('1').isGreaterThan(quantity('2'))`",
        "quantity('1').isGreaterThan(quantity('2'))",
    ),
    "quantities with <": (
        "quantity('1') < quantity('2') && true",
        "15: `<` does not take quantity and quantity; write `quantity('1').isLessThan(quantity('2'))`",
        "quantity('1').isLessThan(quantity('2')) && true",
    ),
    "quantities with >=": (
        "true && quantity('1') >= quantity('2')",
        "23: `>=` does not take quantity and quantity; write `quantity('1').compareTo(quantity('2')) >= 0`",
        "true && quantity('1').compareTo(quantity('2')) >= 0",
    ),
    "quantities taken apart": (
        "(quantity('2') - quantity('1')).sign() > 0",
        "16: `-` does not take quantity and quantity; write `quantity('2').sub(quantity('1'))`",
        "quantity('2').sub(quantity('1')).sign() > 0",
    ),
    "quantities divided": (
        "quantity('2') / quantity('1') > 1.0",
        (
            "15: `/` does not take quantity and quantity; write `quantity('2').asApproximateFloat() / "
            "quantity('1').asApproximateFloat()`"
        ),
        "quantity('2').asApproximateFloat() / quantity('1').asApproximateFloat() > 1.0",
    ),
    "a quantity and an int": (
        "quantity('1') < 5",
        "15: `<` does not take quantity and int; write `quantity('1').asApproximateFloat() < 5.0`",
        "quantity('1').asApproximateFloat() < 5.0",
    ),
    "a quantity and a double": (
        "free.cpu > quantity('5')",
        "10: `>` does not take double and quantity; write `quantity('5').asApproximateFloat()`",
        "free.cpu > quantity('5').asApproximateFloat()",
    ),
    "a quantity and a text": (
        "quantity('1') < '5'",
        "15: `<` does not take quantity and string; write `quantity('1').compareTo(quantity('5')) < 0`",
        "quantity('1').compareTo(quantity('5')) < 0",
    ),
    "a quantity compared with a text, as a method": (
        "quantity('1').isLessThan('5')",
        "15: `isLessThan` does not take quantity and string; write `quantity('5')`",
        "quantity('1').isLessThan(quantity('5'))",
    ),
    "a double asked as if it were a quantity": (
        "free.cpu.isGreaterThan(quantity('1'))",
        (
            "10: `isGreaterThan` does not take double and quantity; write `free.cpu > "
            "quantity('1').asApproximateFloat()`"
        ),
        "free.cpu > quantity('1').asApproximateFloat()",
    ),
    "a quantity of a number": (
        "quantity(16).sign() > 0",
        "1: `quantity` does not take int; write `quantity('16')`",
        "quantity('16').sign() > 0",
    ),
    "a quantity of a double": (
        "quantity(free.cpu).sign() > 0",
        "1: `quantity` does not take double; it is a number already: compare it with one",
        "free.cpu > 0.0",
    ),
    "a text of an amount and a number": (
        "node.status.allocatable['cpu'] > 2",
        (
            "32: `>` does not take string and int; write "
            "`quantity(node.status.allocatable['cpu']).compareTo(quantity('2')) > 0`"
        ),
        "quantity(node.status.allocatable['cpu']).compareTo(quantity('2')) > 0",
    ),
    "all amounts at once": (
        "free > 1",
        "6: `>` does not take map(string, double) and int; write `free['cpu']` for one of them",
        "free['cpu'] > 1.0",
    ),
    "a resource with a dash": (
        "free.ephemeral-storage > 1.0",
        "6: a key with `-` in it is not read as a field; write `free['ephemeral-storage']`",
        "free['ephemeral-storage'] > 1.0",
    ),
    "a resource with a slash": (
        "free.nvidia.com/gpu > 1.0",
        "6: a key with `.` in it is not read as a field; write `free['nvidia.com/gpu']`",
        "free['nvidia.com/gpu'] > 1.0",
    ),
    "a resource with a slash, far down": (
        "pod.spec.containers[0].resources.limits.nvidia.com/gpu == '1'",
        (
            "41: a key with `.` in it is not read as a field; write "
            "`pod.spec.containers[0].resources.limits['nvidia.com/gpu']`"
        ),
        "pod.spec.containers[0].resources.limits['nvidia.com/gpu'] == '1'",
    ),
    "an amount less one": (
        "node.status.allocatable.cpu - 1 == quantity('1')",
        "29: `-` does not take string and int; write `quantity(node.status.allocatable.cpu).sub(1)`",
        "quantity(node.status.allocatable.cpu).sub(1) == quantity('1')",
    ),
    "a quotient of ints": (
        "pods.size() / 110 < 0.5",
        ("19: `<` does not take int and double; `/` of ints drops the rest: write `double(pods.size()) / 110.0`"),
        "double(pods.size()) / 110.0 < 0.5",
    ),
    "a percentage": (
        "data.load < 80%",
        "13: syntax error: there is no percent; write `0.8`, or `80.0` of 100",
        "data.load < 0.8",
        "data.load < 80.0",
    ),
    "a number with lines in it": (
        "1_000_000 < 2",
        "1: syntax error: `1_000_000` is no number; write `1000000`",
        "1000000 < 2",
    ),
    "isQuantity() of a number": (
        "isQuantity(free['cpu'])",
        "1: `isQuantity` does not take double; it is a number already: compare it with one",
    ),
    "a double and a request": (
        "free.cpu >= pod.spec.containers[0].resources.requests['cpu']",
        (
            "10: `>=` does not take double and string; write "
            "`quantity(pod.spec.containers[0].resources.requests['cpu']).asApproximateFloat()`"
        ),
        "free.cpu >= quantity(pod.spec.containers[0].resources.requests['cpu']).asApproximateFloat()",
    ),
    "a text and a quantity": (
        "node.status.allocatable.memory > quantity('16Gi')",
        (
            "32: `>` does not take string and quantity; write "
            "`quantity(node.status.allocatable.memory).compareTo(quantity('16Gi')) > 0`"
        ),
        "quantity(node.status.allocatable.memory).compareTo(quantity('16Gi')) > 0",
    ),
    "asInteger() of a text": (
        "node.status.allocatable['memory'].asInteger() > 1",
        ("35: `asInteger` does not take string; write `quantity(node.status.allocatable['memory']).asInteger()`"),
        "quantity(node.status.allocatable['memory']).asInteger() > 1",
    ),
    "value() of a quantity": (
        "quantity('1').value() > 1.0",
        "15: `value` does not take quantity; write `quantity('1').asApproximateFloat()`",
        "quantity('1').asApproximateFloat() > 1.0",
    ),
    "a resource that is misspelt": (
        "free.CPU > 1.0",
        "6: no pod can request a resource `CPU`; did you mean `cpu`?",
    ),
    "a resource by a nickname": (
        "allocatable[?'mem'].orValue(0.0) > 1.0",
        "14: no pod can request a resource `mem`; did you mean `memory`?",
    ),
    "a resource that no pod can request": (
        "'dongle' in requested",
        ("1: no pod can request a resource `dongle`; but for Kubernetes' own, all have a prefix, as nvidia.com/gpu"),
    ),
    "a gpu": (
        "free.gpu > 0.0",
        "6: no pod can request a resource `gpu`; did you mean `nvidia.com/gpu`?",
    ),
}

TEXTS: dict[str, Row] = {
    "a label with a dash": (
        "node.metadata.labels.my-label == 'x'",
        "22: a key with `-` in it is not read as a field; write `node.metadata.labels['my-label']`",
        "node.metadata.labels['my-label'] == 'x'",
    ),
    "a label with dots and a slash": (
        "true && node.metadata.labels.topology.kubernetes.io/zone == 'a'",
        (
            "30: a key with `.` in it is not read as a field; write "
            "`node.metadata.labels['topology.kubernetes.io/zone']`"
        ),
        "true && node.metadata.labels['topology.kubernetes.io/zone'] == 'a'",
    ),
    "a label with a number": (
        "node.metadata.labels['x'] == 1",
        "27: `==` does not take string and int; write `'1'`",
        "node.metadata.labels['x'] == '1'",
    ),
    "a label with a truth": (
        "node.metadata.labels['x'] == true",
        "27: `==` does not take string and bool; write `'true'`",
        "node.metadata.labels['x'] == 'true'",
    ),
    "a label as a number": (
        "node.metadata.labels['x'] > 5",
        "27: `>` does not take string and int; write `int(node.metadata.labels['x'])`",
        "int(node.metadata.labels['x']) > 5",
    ),
    "a label as a double": (
        "node.metadata.labels['x'] > 0.5",
        "27: `>` does not take string and double; write `double(node.metadata.labels['x'])`",
        "double(node.metadata.labels['x']) > 0.5",
    ),
    "a number in quotes": (
        "pod.spec.priority > '5'",
        "19: `>` does not take int and string; write `5`",
        "pod.spec.priority > 5",
    ),
    "a word for a number": (
        "pod.spec.priority > 'high'",
        "19: `>` does not take int and string; compare a number with a number, a text with a text",
    ),
    "a label that is not null": (
        "node.metadata.labels['a'] != null",
        ("27: `!=` does not take string and null; what is absent is not null: write `'a' in node.metadata.labels`"),
        "'a' in node.metadata.labels",
    ),
    "a label that is null": (
        "node.metadata.labels['a'] == null || true",
        ("27: `==` does not take string and null; what is absent is not null: write `!('a' in node.metadata.labels)`"),
        "!('a' in node.metadata.labels) || true",
    ),
    "a field that is null": (
        "pod.spec.nodeName == null",
        "19: `==` does not take string and null; what is absent is not null: write `!has(pod.spec.nodeName)`",
        "!has(pod.spec.nodeName)",
    ),
    "None": (
        "pod.spec.nodeName != None",
        "22: there is no variable `None`; what is absent is not null: write `has(pod.spec.nodeName)`",
        "has(pod.spec.nodeName)",
    ),
    "nil for a key": (
        "node.metadata.labels['a'] == nil",
        "30: there is no variable `nil`; what is absent is not null: write `!('a' in node.metadata.labels)`",
        "!('a' in node.metadata.labels)",
    ),
    "is None": (
        "pod.spec.nodeName is None",
        "19: syntax error: there is no `is None`; write `!has(pod.spec.nodeName)`",
        "!has(pod.spec.nodeName)",
    ),
    "is not None": (
        "node.metadata.labels['a'] is not None",
        "27: syntax error: there is no `is not None`; write `'a' in node.metadata.labels`",
        "'a' in node.metadata.labels",
    ),
    "an optional and a text": (
        "node.metadata.labels[?'a'] == 'x'",
        "28: `==` does not take optional(string) and string; write `node.metadata.labels[?'a'].orValue('')`",
        "node.metadata.labels[?'a'].orValue('') == 'x'",
    ),
    "a text and an optional": (
        "'x' == pod.?spec.?nodeName",
        "5: `==` does not take string and optional(string); write `pod.?spec.?nodeName.orValue('')`",
        "'x' == pod.?spec.?nodeName.orValue('')",
    ),
    "a text in an optional": (
        "node.metadata.labels[?'a'].startsWith('x')",
        ("28: `startsWith` does not take optional(string) and string; write `node.metadata.labels[?'a'].orValue('')`"),
        "node.metadata.labels[?'a'].orValue('').startsWith('x')",
    ),
    "orValue of a key": (
        "node.metadata.labels['a'].orValue('') == 'x'",
        "27: `orValue` does not take string and string; write `node.metadata.labels[?'a'].orValue('')`",
        "node.metadata.labels[?'a'].orValue('') == 'x'",
    ),
    "orValue of a field": (
        "pod.spec.nodeName.orValue('') == 'x'",
        "19: `orValue` does not take string and string; write `pod.spec.?nodeName.orValue('')`",
        "pod.spec.?nodeName.orValue('') == 'x'",
    ),
    "a default of another type": (
        "node.metadata.labels[?'a'].orValue(1) == '1'",
        (
            "28: `orValue` does not take optional(string) and int; the default is of the same type: write "
            "`.orValue('1')`"
        ),
        "node.metadata.labels[?'a'].orValue('1') == '1'",
    ),
    "has() of a key": (
        "has(node.metadata.labels['a'])",
        (
            "25: has() takes a field, as in has(pod.spec.priority); for a key of a map write `'a' in "
            "node.metadata.labels`"
        ),
        "'a' in node.metadata.labels",
    ),
    "has() of in": (
        "has('a' in node.metadata.labels)",
        "9: has() takes a field, as in has(pod.spec.priority); write `'a' in node.metadata.labels` alone",
        "'a' in node.metadata.labels",
    ),
    "has() of a variable": (
        "has(node)",
        "5: has() takes a field, as in has(pod.spec.priority); a variable is always there",
    ),
    "a text and a number": (
        "('a' + 1) == 'a1'",
        "6: `+` does not take string and int; write `string(1)`",
        "('a' + string(1)) == 'a1'",
    ),
    "a text in a text": (
        "'a' in node.metadata.name",
        "5: `in` looks for string in string; write `node.metadata.name.contains('a')`",
        "node.metadata.name.contains('a')",
    ),
    "a text equal to a list": (
        "pod.metadata.name == ['a', 'b']",
        "19: `==` does not take string and list(string); write `pod.metadata.name in ['a', 'b']`",
        "pod.metadata.name in ['a', 'b']",
    ),
    "contains() of a map": (
        "node.metadata.labels.contains('a')",
        "22: `contains` does not take map(string, string) and string; write `'a' in node.metadata.labels`",
        "'a' in node.metadata.labels",
    ),
    "a text without quotes": (
        "node.metadata.labels['a'] == ssd",
        "30: there is no variable `ssd`; a text stands in quotes: `'ssd'`",
        "node.metadata.labels['a'] == 'ssd'",
    ),
    "a text with a backslash": (
        "pod.metadata.name.matches('\\d+')",
        "27: syntax error: no character is written `\\d`; write `r` before the quote, or `\\\\d`",
        "pod.metadata.name.matches('\\\\d+')",
        "pod.metadata.name.matches(r'\\d+')",
    ),
    "a quote in a text": (
        "pod.metadata.name == 'it's'",
        (
            "25: syntax error: the quote ends the string here, and `s'` follows; write `\\'` for one inside, or "
            'put `"` around it'
        ),
        'pod.metadata.name == "it\'s"',
        "pod.metadata.name == 'it\\'s'",
    ),
    "two kinds of quotes": (
        "pod.metadata.name == 'a\"",
        "22: syntax error: the string does not end; close the quote with `'`",
        "pod.metadata.name == 'a'",
    ),
    "a character of a text": (
        "pod.metadata.name[0] == 'w'",
        "18: string has no elements by int; write `pod.metadata.name.charAt(0)`",
        "pod.metadata.name.charAt(0) == 'w'",
    ),
    "a slice": (
        "pod.metadata.name[0:3] == 'web'",
        "18: syntax error: there are no slices; write `.substring(...)`",
        "pod.metadata.name.substring(0, 3) == 'web'",
    ),
    "words with commas": (
        "pod.spec.priorityClassName in 'high,low'",
        "28: `in` looks for string in string; write `pod.spec.priorityClassName in ['high', 'low']`",
        "pod.spec.priorityClassName in ['high', 'low']",
    ),
    "a text with a prefix": (
        "f\"{pod.metadata.name}-x\" == 'a-x'",
        "1: syntax error: there is no `f` before a text; join texts with `+`, or write `.format([...])`",
        "pod.metadata.name + '-x' == 'a-x'",
        "'%s-x'.format([pod.metadata.name]) == 'a-x'",
    ),
    "a text filled by %": (
        "'%s' % pod.metadata.name == 'a'",
        "6: `%` does not take string and string; write `'%s'.format([pod.metadata.name])`",
        "'%s'.format([pod.metadata.name]) == 'a'",
    ),
    "format() without a list": (
        "'%s'.format(pod.metadata.name) == 'a'",
        "6: `format` does not take string and string; write `'%s'.format([pod.metadata.name])`",
        "'%s'.format([pod.metadata.name]) == 'a'",
    ),
    "two texts": (
        "pod.metadata.name, node.metadata.name",
        "18: syntax error near `,`; an expression is one value: join texts with `+`, conditions with `&&`",
        "pod.metadata.name + 'a' == 'a' && true",
    ),
    "a truth as a text": (
        "node.spec.unschedulable == 'false'",
        "25: `==` does not take bool and string; write `false`",
        "node.spec.unschedulable == false",
    ),
    "a text for a key in exists()": (
        "exists(node.metadata.labels['gpu'])",
        "1: `exists` is not called like this; write `'gpu' in node.metadata.labels`",
        "'gpu' in node.metadata.labels",
    ),
    "a default by ||": (
        "(node.metadata.labels['zone'] || 'none') == 'a'",
        "31: `||` takes bools, not string and string; write `node.metadata.labels[?'zone'].orValue('none')`",
        "(node.metadata.labels[?'zone'].orValue('none')) == 'a'",
    ),
    "one comparison for two texts": (
        "pod.metadata.namespace == 'a' || 'b'",
        "31: `||` takes bools, not bool and string; write `pod.metadata.namespace == 'b'`",
        "pod.metadata.namespace == 'a' || pod.metadata.namespace == 'b'",
    ),
    "a list without brackets": (
        "pod.metadata.namespace in 'a', 'b'",
        "27: syntax error: a list stands in square brackets; write `[...]`",
        "pod.metadata.namespace in ['a', 'b']",
    ),
    "an optional as a number": (
        "int(node.metadata.labels[?'w']) > 1",
        "1: `int` does not take optional(string); write `node.metadata.labels[?'w'].orValue('0')`",
        "int(node.metadata.labels[?'w'].orValue('0')) > 1",
    ),
    "a conversion as a method": (
        "pod.metadata.annotations['x'].int() > 5",
        "31: `int` is not called like this; write `int(pod.metadata.annotations['x'])`",
        "int(pod.metadata.annotations['x']) > 5",
    ),
    "a label of a node": (
        "node.hasLabel('gpu')",
        "6: there is no function `hasLabel`; write `'gpu' in node.metadata.labels`",
        "'gpu' in node.metadata.labels",
    ),
    "default()": (
        "default(data.load, 1.0) < 0.8",
        "1: there is no function `default`; write `data.?load.orValue(1.0)`",
        "data.?load.orValue(1.0) < 0.8",
    ),
}

LISTS: dict[str, Row] = {
    ".length": (
        "pods.length > 0",
        "6: list(pod on a node) has no fields; write `pods.size()`",
        "pods.size() > 0",
    ),
    ".length()": (
        "pod.metadata.name.length() > 0",
        "19: there is no function `length`; write `pod.metadata.name.size()`",
        "pod.metadata.name.size() > 0",
    ),
    ".size without brackets": (
        "pods.size > 0",
        "6: list(pod on a node) has no fields; write `pods.size()`",
        "pods.size() > 0",
    ),
    ".length of a map": (
        "pod.metadata.labels.length > 0",
        "28: `>` does not take string and int; write `pod.metadata.labels.size()`",
        "pod.metadata.labels.size() > 0",
    ),
    "a list and a number": (
        "pods > 5",
        "6: `>` does not take list(pod on a node) and int; write `pods.size()`",
        "pods.size() > 5",
    ),
    "len()": (
        "len(pods) > 0",
        "1: there is no function `len`; write `size(pods)`",
        "size(pods) > 0",
    ),
    "count()": (
        "count(pods) > 0",
        "1: there is no function `count`; write `size(pods)`",
        "size(pods) > 0",
    ),
    "get()": (
        "node.metadata.labels.get('a') == 'x'",
        "22: there is no function `get`; write `node.metadata.labels[?'a'].orValue('')`",
        "node.metadata.labels[?'a'].orValue('') == 'x'",
    ),
    "get() with a default": (
        "node.metadata.labels.get('a', 'b') == 'x'",
        "22: there is no function `get`; write `node.metadata.labels[?'a'].orValue('b')`",
        "node.metadata.labels[?'a'].orValue('b') == 'x'",
    ),
    "sum()": (
        "sum(pods.map(p, p.spec.priority)) > 0",
        (
            "1: there is no function `sum`; nothing adds up a list; what all pods on the node request is "
            "`requested`, as in `requested['cpu']`"
        ),
        "requested['cpu'] > 0.0",
    ),
    "min()": (
        "min(free.cpu, 2.0) > 1.0",
        "1: there is no function `min`; write `math.least(free.cpu, 2.0)`",
        "math.least(free.cpu, 2.0) > 1.0",
    ),
    "math.max()": (
        "math.max(1, 2) > 1",
        "6: there is no function `max`; write `math.greatest(1, 2)`",
        "math.greatest(1, 2) > 1",
    ),
    ".max()": (
        "[1, 2].max() > 1",
        "8: there is no function `max`; write `math.greatest([1, 2])`",
        "math.greatest([1, 2]) > 1",
    ),
    "abs()": (
        "abs(free.cpu) > 1.0",
        "1: there is no function `abs`; did you mean `math.abs()`?",
    ),
    "any()": (
        "pods.any(p, p.spec.priority > 1)",
        "6: there is no function `any`; write `pods.exists(p, p.spec.priority > 1)`",
        "pods.exists(p, p.spec.priority > 1)",
    ),
    "every()": (
        "pods.every(p, p.spec.priority > 1)",
        "6: there is no function `every`; write `pods.all(p, p.spec.priority > 1)`",
        "pods.all(p, p.spec.priority > 1)",
    ),
    "an arrow": (
        "pods.exists(p => p.spec.priority > 1)",
        "13: syntax error: there is no arrow; a comma stands in its place: `p, ...`",
        "pods.exists(p, p.spec.priority > 1)",
    ),
    "a macro without what it asks": (
        "pods.exists(p)",
        "6: `exists` is not called like this; write `pods.exists(p, ...)`",
        "pods.exists(p, p.spec.priority > 1)",
    ),
    "a macro without a name": (
        "pods.exists(p.spec.priority > 1)",
        "6: `exists` is not called like this; write `pods.exists(p, ...)`",
        "pods.exists(p, p.spec.priority > 1)",
    ),
    "a macro with a name in quotes": (
        "pods.exists('p', true)",
        "13: a macro takes a name first, such as `x`, and then what is to be said of `x`",
    ),
    "a condition by its name": (
        "node.status.conditions['Ready']",
        (
            "23: list(NodeCondition) has no elements by string; write `node.status.conditions.exists(c, c.type "
            "== 'Ready' && c.status == 'True')`"
        ),
        "node.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    ),
    "a condition as a field": (
        "node.status.conditions.Ready == 'True'",
        (
            "24: list(NodeCondition) has no fields; write `node.status.conditions.exists(c, c.type == 'Ready' && "
            "c.status == 'True')`"
        ),
        "node.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    ),
    "an item by its name": (
        "pod.spec.containers['main'].image == ''",
        ("20: list(Container) has no elements by string; write `pod.spec.containers.exists(c, c.name == 'main' ...)`"),
        "pod.spec.containers.exists(c, c.name == 'main' && c.image == '')",
    ),
    "a taint by its key": (
        "node.spec.taints['gpu']",
        "17: list(Taint) has no elements by string; write `node.spec.taints.exists(t, t.key == 'gpu' ...)`",
        "node.spec.taints.exists(t, t.key == 'gpu' && t.effect == 'NoSchedule')",
    ),
    "contains() of a list of objects": (
        "node.spec.taints.contains('gpu')",
        ("18: `contains` does not take list(Taint) and string; write `node.spec.taints.exists(t, t.key == 'gpu')`"),
        "node.spec.taints.exists(t, t.key == 'gpu')",
    ),
    "a field of all items": (
        "pod.spec.containers.image == ''",
        "21: list(Container) has no fields; it has items: write `pod.spec.containers.exists(c, c.image ...)`",
        "pod.spec.containers.exists(c, c.image == '')",
    ),
    "keys()": (
        "node.metadata.labels.keys().exists(k, k == 'a')",
        ("22: there is no function `keys`; leave it out: macros loop over the keys of a map, `node.metadata.labels`"),
        "node.metadata.labels.exists(k, k == 'a')",
    ),
    "a list for a truth": (
        "pods.filter(p, p.spec.priority > 1)",
        (
            "1: a bool is wanted, this gives a list<pod on a node>; compare it with something: `pods.filter(p, "
            "p.spec.priority > 1).size() > 0`"
        ),
        "pods.filter(p, p.spec.priority > 1).size() > 0",
    ),
    "what an empty list holds": (
        "[] + 1 == []",
        "4: `+` does not take list and int",
    ),
    "a field by its index": (
        "node['metadata'].name == 'b'",
        "5: Node has no elements by string; write `node.metadata`",
        "node.metadata.name == 'b'",
    ),
    "a comprehension": (
        "any(p.metadata.name == 'a' for p in pods)",
        "28: syntax error: there is no `for`; write `pods.exists(p, ...)`",
        "pods.exists(p, p.metadata.name == 'a')",
    ),
    "a tuple": (
        "pod.metadata.name in ('a', 'b')",
        "22: syntax error: a list stands in square brackets; write `[...]`",
        "pod.metadata.name in ['a', 'b']",
    ),
    "a set": (
        "pod.metadata.name in {'a', 'b'}",
        "22: syntax error: a list stands in square brackets; write `[...]`",
        "pod.metadata.name in ['a', 'b']",
    ),
    "a field of a field": (
        "node.taints.exists(t, t.key == 'gpu')",
        "6: Node has no field `taints`; did you mean `spec.taints`?",
    ),
    "count() with a condition": (
        "pods.count(p, p.spec.priority > 1) < 3",
        "6: there is no function `count`; write `pods.filter(p, p.spec.priority > 1).size()`",
        "pods.filter(p, p.spec.priority > 1).size() < 3",
    ),
    "an object for its key": (
        "node.spec.taints.all(taint, pod.spec.tolerations.exists(tol, tol.key == taint))",
        "70: `==` does not take string and Taint; write `taint.key`",
        "node.spec.taints.all(taint, pod.spec.tolerations.exists(tol, tol.key == taint.key))",
    ),
    "all items by *": (
        "pod.spec.containers[*].image == 'x'",
        "20: syntax error: there is no `[*]`; ask all items: `.exists(x, ...)`",
        "pod.spec.containers.exists(x, x.image == 'x')",
    ),
    "a colon in a macro": (
        "pod.spec.containers.exists(c: c.image == 'x')",
        "28: syntax error: no `:` stands here; a comma stands in its place: `c, ...`",
        "pod.spec.containers.exists(c, c.image == 'x')",
    ),
    "a field of the wrong level of a pod on the node": (
        "pods.exists(p, p.labels['app'] == 'web')",
        "18: `labels` is no field that pods on a node are kept with; did you mean `metadata.labels`?",
    ),
    "an item added to a list": (
        "([1] + 2).size() == 2",
        "6: `+` does not take list(int) and int; write `[2]`",
        "([1] + [2]).size() == 2",
    ),
    "objects sorted": (
        "pods.sort().size() > 1",
        "6: `sort` does not take list(pod on a node); write `pods.sortBy(p, ...)`",
        "pods.sortBy(p, p.spec.priority).size() > 1",
    ),
    "size() of two things": (
        "size(pods, 1) > 2",
        "1: `size` is not called like this; it takes one value",
    ),
    "a value as a function": (
        "free() > 1.0",
        "1: there is no function `free`; it is a value: write `free`",
        "free.cpu > 1.0",
    ),
}

OPERATORS: dict[str, Row] = {
    "and": (
        "pod.spec.priority > 1 and node.spec.unschedulable",
        "23: syntax error: there is no `and`; write `&&`",
        "pod.spec.priority > 1 && node.spec.unschedulable",
    ),
    "or": (
        "pod.spec.priority > 1 or node.spec.unschedulable",
        "23: syntax error: there is no `or`; write `||`",
        "pod.spec.priority > 1 || node.spec.unschedulable",
    ),
    "not": (
        "not node.spec.unschedulable",
        "1: syntax error: there is no `not`; write `!`",
        "!node.spec.unschedulable",
    ),
    "not with a bracket": (
        "not (node.spec.unschedulable)",
        "2: there is no function `not`; write `!(node.spec.unschedulable)`",
        "!(node.spec.unschedulable)",
    ),
    "not in": (
        "pod.metadata.name not in ['x', 'y'] && true",
        "19: syntax error: there is no `not in`; write `!(pod.metadata.name in ['x', 'y'])`",
        "!(pod.metadata.name in ['x', 'y']) && true",
    ),
    "True": (
        "node.spec.unschedulable == True",
        "28: there is no variable `True`; write `true`",
        "node.spec.unschedulable == true",
    ),
    "if": (
        "if node.spec.unschedulable then true else false",
        "1: syntax error: there is no `if`; write `... ? ... : ...`",
        "node.spec.unschedulable ? true : false",
    ),
    "three equals signs": (
        "pod.spec.priority === 1",
        "19: syntax error: there is no `===`; write `==`",
        "pod.spec.priority == 1",
    ),
    "!==": (
        "pod.spec.priority !== 1",
        "19: syntax error: there is no `!==`; write `!=`",
        "pod.spec.priority != 1",
    ),
    "<>": (
        "pod.spec.priority <> 1",
        "19: syntax error: there is no `<>`; write `!=`",
        "pod.spec.priority != 1",
    ),
    "=<": (
        "pod.spec.priority =< 1",
        "19: syntax error: there is no `=<`; write `<=`",
        "pod.spec.priority <= 1",
    ),
    "=~": (
        "pod.metadata.name =~ 'a.*'",
        "19: syntax error: there is no `=~`; write `pod.metadata.name.matches('a.*')`",
        "pod.metadata.name.matches('a.*')",
    ),
    "??": (
        "pod.metadata.labels['a'] ?? '' == 'x'",
        "26: syntax error: there is no `??`; write `pod.metadata.labels[?'a'].orValue('')`",
        "pod.metadata.labels[?'a'].orValue('') == 'x'",
    ),
    "?.": (
        "node?.spec == node.spec",
        "5: syntax error: there is no `?.`; write `.?`",
        "node.?spec == optional.of(node.spec)",
    ),
    "&": (
        "pod.spec.priority > 1 & node.spec.unschedulable",
        "23: syntax error: there is no `&`; write `&&`",
        "pod.spec.priority > 1 && node.spec.unschedulable",
    ),
    "|": (
        "pod.spec.priority > 1 | node.spec.unschedulable",
        "23: syntax error: there is no `|`; write `||`",
        "pod.spec.priority > 1 || node.spec.unschedulable",
    ),
    "^": (
        "free.cpu ^ 2.0 > 1.0",
        "10: syntax error: there is no `^`; there are no powers: multiply",
    ),
    ";": (
        "pod.spec.priority > 1;",
        ("22: syntax error: there is no `;`; an expression is one value: leave it out, or join conditions with `&&`"),
        "pod.spec.priority > 1 && true",
    ),
    "a chain": (
        "1 < pod.spec.priority < 5",
        "23: `<` does not take bool and int; write `1 < pod.spec.priority && pod.spec.priority < 5`",
        "1 < pod.spec.priority && pod.spec.priority < 5",
    ),
    "a number that ends with a dot": (
        "free.cpu > 1.",
        "12: syntax error: `1.` is no number; write `1.0`",
        "free.cpu > 1.0",
    ),
    "typographic quotes": (
        "pod.metadata.name == \u201ca\u201d",
        "22: syntax error: '\u201c' (LEFT DOUBLE QUOTATION MARK) is no quote; a text stands between two `'`",
        "pod.metadata.name == 'a'",
    ),
    "a space that does not break": (
        "pod.metadata.name ==\xa0'a'",
        "21: syntax error: '\\xa0' (NO-BREAK SPACE) is no space; type a plain space",
    ),
    "a dash for a minus": (
        "pod.spec.priority \u2013 1 > 0",
        "19: syntax error: '\u2013' (EN DASH) is no minus; type a plain `-`",
        "pod.spec.priority - 1 > 0",
    ),
    "backticks": (
        "pod.metadata.name == `a`",
        "22: syntax error: '`' (GRAVE ACCENT) is no quote; a text stands between two `'`",
        "pod.metadata.name == 'a'",
    ),
    "a template": (
        "{{ .Values.x }} == 'a'",
        "1: syntax error: `{{` is a template that nobody has filled in; let Helm render the file first",
    ),
    "a placeholder of a shell": (
        "${pod.metadata.name} == 'a'",
        "1: syntax error: there is no `${`; variables are named as they are: leave it out",
    ),
    "a bracket that nothing opens": (
        "pod.spec.priority > 1)",
        "22: syntax error: nothing opens what `)` closes; remove it, or open it before",
    ),
    "an operator without its left side": (
        "&& true",
        "1: syntax error near `&&`; `&&` stands between two values",
        "true && true",
    ),
    "a bracket that nothing closes": (
        "pods.exists(p, p.spec.priority > 1",
        "35: syntax error: the expression ends too early; nothing closes `(p, p.spec.priority ...`",
        "pods.exists(p, p.spec.priority > 1)",
    ),
    "typeof": (
        "typeof pod.spec.priority == int",
        "1: syntax error: there is no `typeof`; write `type(...)`",
        "type(pod.spec.priority) == int",
    ),
    "new": (
        "new Date() > now",
        "1: syntax error: there is no `new`; the moment of the decision is `now`",
        "now > now",
    ),
    "a pattern between slashes": (
        "pod.metadata.name.matches(/^web/)",
        "27: syntax error: a pattern is a text; write `'...'`",
        "pod.metadata.name.matches('^web')",
    ),
    "a template with if": (
        "{{- if .Values.gpu }}node.metadata.labels['gpu'] == 'true'{{- end }}",
        "1: syntax error: `{{` is a template that nobody has filled in; let Helm render the file first",
    ),
    "// for a whole quotient": (
        "int(node.metadata.labels['gen']) // 2 == 1",
        "1: a bool is wanted, this gives an int; what follows `//` is a comment",
        "int(node.metadata.labels['gen']) / 2 == 1 // half",
    ),
    "a dollar": (
        "$threshold > 5",
        "1: syntax error: there is no `$`; variables are named as they are: leave it out",
    ),
    "the left side of &&": (
        "pod.metadata.name && true",
        "19: `&&` takes bools, not string and bool; write `pod.metadata.name == '...'`",
        "pod.metadata.name == 'a' && true",
    ),
    "a number for a truth": (
        "pod.metadata.name == 'a' && 5",
        "26: `&&` takes bools, not bool and int; compare it with something",
    ),
    "a double for a condition": (
        "(allocatable.cpu ? 1 : 0) > 0",
        (
            "18: `?:` takes a bool and two values of one type, not double, int and int; compare "
            "`allocatable.cpu` with something"
        ),
        "(allocatable.cpu > 1.0 ? 1 : 0) > 0",
    ),
    "branches of an int and a double": (
        "(node.spec.unschedulable ? 100 : 0.5) > 1.0",
        "26: `?:` takes a bool and two values of one type, not bool, int and double; write `100.0`",
        "(node.spec.unschedulable ? 100.0 : 0.5) > 1.0",
    ),
    "branches of a double and an int": (
        "(node.spec.unschedulable ? 0.5 : pod.spec.priority) > 1.0",
        (
            "26: `?:` takes a bool and two values of one type, not bool, double and int; write "
            "`double(pod.spec.priority)`"
        ),
        "(node.spec.unschedulable ? 0.5 : double(pod.spec.priority)) > 1.0",
    ),
    "if()": (
        "if(free.cpu > 1.0, true, false)",
        "1: `if` is a reserved word of CEL; write `free.cpu > 1.0 ? true : false`",
        "free.cpu > 1.0 ? true : false",
    ),
    "a range": (
        "now.getHours() in 8..20",
        "19: syntax error: there is no `..`; compare with both ends, with `&&` between",
        "now.getHours() >= 8 && now.getHours() <= 20",
    ),
    "a sign of mathematics": (
        "pod.spec.priority \u2265 1",
        "19: syntax error: there is no `\u2265`; write `>=`",
        "pod.spec.priority >= 1",
    ),
    "no other branch": (
        "free.cpu > 1.0 ? true",
        "22: syntax error: `?` wants a `:`; write `... ? ... : ...`; an optional field is read with `.?`",
        "free.cpu > 1.0 ? true : false",
        "pod.?spec == pod.?spec",
    ),
    "branches of a bool and a text": (
        "free.cpu > 1.0 ? true : 'false'",
        "16: `?:` takes a bool and two values of one type, not bool, bool and string; write `false`",
        "free.cpu > 1.0 ? true : false",
    ),
    "=~ with slashes": (
        "pod.metadata.name =~ /a.*/",
        "19: syntax error: there is no `=~`; write `pod.metadata.name.matches('a.*')`",
        "pod.metadata.name.matches('a.*')",
    ),
    "a dash as in a list": (
        "- node.spec.unschedulable",
        "1: `-` takes a number, not bool; it is a sign here, and begins no item of a list: leave it out",
    ),
    "an expression in quotes": (
        "'node.spec.unschedulable'",
        "1: a bool is wanted, this gives a string; leave the quotes out",
    ),
    "a key of YAML": (
        "expression: true",
        "11: syntax error near `:`; it stands behind a `?` and in maps, and nowhere else",
        "(true ? true : true) && {'a': 1}['a'] == 1",
    ),
    "nothing in brackets": (
        "()",
        "2: syntax error near `)`; something is missing before it",
    ),
    "a comment of C": (
        "/* why */ true",
        "1: syntax error: there is no `/*`; a comment begins with `//`",
        "true // why",
    ),
    "a dot before an index": (
        'free.["cpu"] > 1.0',
        "5: syntax error: no `.` stands before a `[`; leave it out",
    ),
    "a number that goes on": (
        "1pod == 'x'",
        "1: syntax error: `1pod` is no number; a text stands in quotes: `'1pod'`",
        "'1pod' == 'x'",
    ),
}

NAMES: dict[str, Row] = {
    "object": (
        "object.spec.priority > 1",
        "1: there is no variable `object`; the pod is `pod`, its node `node`",
        "pod.spec.priority > 1 && node.spec.unschedulable",
    ),
    "object in has()": (
        "has(object.spec.priority)",
        "5: there is no variable `object`; the pod is `pod`, its node `node`",
        "has(pod.spec.priority) && node.spec.unschedulable",
    ),
    "oldObject": (
        "oldObject.spec == pod.spec",
        "1: there is no variable `oldObject`; a rule sees things as they are now, in `pod` and `node`",
        "pod.spec == pod.spec && node.spec.unschedulable",
    ),
    "params": (
        "params.limit > 1",
        ("1: there is no variable `params`; what the policy itself declares is read as `variables...` and `data...`"),
        "variables.wants == 'a' && data.load > 1.0",
    ),
    "an admission request": (
        "request.userInfo.username == 'a'",
        (
            "18: double has no fields; `request` is what the pod requests, as in `request['cpu']`; who asks for "
            "the pod is not seen"
        ),
        "request['cpu'] > 1.0",
    ),
    "the operation of an admission request": (
        "request.operation == 'CREATE'",
        (
            "19: `==` does not take double and string; `request` is what the pod requests, as in "
            "`request['cpu']`; who asks for the pod is not seen"
        ),
        "request['cpu'] > 1.0",
    ),
    "authorizer": (
        "authorizer.group('').check('x').allowed()",
        "1: there is no variable `authorizer`; a rule sees no users and no permissions",
    ),
    "a library of Kubernetes": (
        "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
        "1: there is no function `cidr`; of Kubernetes' own libraries there is only the one for quantities",
    ),
    "a variable by its index": (
        "variables['wants'] == 'x'",
        "1: `variables` is no map, and is read as `variables.name`; write `variables.wants`",
        "variables.wants == 'x'",
    ),
    "a variable without variables": (
        "wants == 'x'",
        "1: there is no variable `wants`; did you mean `variables.wants`?",
    ),
    "data without data": (
        "load > 1.0",
        "1: there is no variable `load`; did you mean `data.load`?",
    ),
    "startsWith() as a function": (
        "startsWith(pod.metadata.name, 'a')",
        "1: `startsWith` is not called like this; write `pod.metadata.name.startsWith('a')`",
        "pod.metadata.name.startsWith('a')",
    ),
    "toLowerCase()": (
        "pod.metadata.name.toLowerCase() == 'a'",
        "19: there is no function `toLowerCase`; write `pod.metadata.name.lowerAscii()`",
        "pod.metadata.name.lowerAscii() == 'a'",
    ),
    "str()": (
        "str(pod.spec.priority) == '1'",
        "1: there is no function `str`; write `string(pod.spec.priority)`",
        "string(pod.spec.priority) == '1'",
    ),
    ".Values": (
        ".Values.threshold > 5",
        "8: there is no variable `Values`; let Helm render the file first",
    ),
    "Math.max()": (
        "Math.max(free.cpu, 2.0) > 1.0",
        "6: there is no function `max`; write `math.greatest(free.cpu, 2.0)`",
        "math.greatest(free.cpu, 2.0) > 1.0",
    ),
    "strings.HasPrefix()": (
        "strings.HasPrefix(pod.metadata.name, 'a')",
        "9: there is no function `HasPrefix`; write `pod.metadata.name.startsWith('a')`",
        "pod.metadata.name.startsWith('a')",
    ),
    "format() as a function": (
        "format('%s', [pod.metadata.name]) == ''",
        "1: `format` is not called like this; write `'%s'.format([pod.metadata.name])`",
        "'%s'.format([pod.metadata.name]) == ''",
    ),
    "a variable as a function": (
        "variables.wants() == 'a'",
        "11: there is no function `wants`; write `variables.wants`, without brackets",
        "variables.wants == 'a'",
    ),
    "this": (
        "this.spec.priority > 1",
        "1: there is no variable `this`; the pod is `pod`, its node `node`",
        "pod.spec.priority > 1 && node.spec.unschedulable",
    ),
    "sprintf()": (
        "sprintf('%s', pod.metadata.name) == 'a'",
        "1: there is no function `sprintf`; write `'%s'.format([pod.metadata.name])`",
        "'%s'.format([pod.metadata.name]) == 'a'",
    ),
}

TIMES: dict[str, Row] = {
    ".hours": (
        "now.hours > 3",
        "5: timestamp has no fields; write `now.getHours()`",
        "now.getHours() > 3",
    ),
    ".hour()": (
        "now.hour() > 5",
        "5: there is no function `hour`; write `now.getHours()`",
        "now.getHours() > 5",
    ),
    ".weekday()": (
        "now.weekday() == 0",
        "5: there is no function `weekday`; write `now.getDayOfWeek()`, which is 0 on Sundays",
        "now.getDayOfWeek() == 0",
    ),
    "now()": (
        "now() > timestamp('2026-01-31T08:00:00Z')",
        "1: there is no function `now`; it is a value: write `now`",
        "now > timestamp('2026-01-31T08:00:00Z')",
    ),
    "a moment as a text": (
        "now > '2026-01-31T08:00:00Z'",
        "5: `>` does not take timestamp and string; write `timestamp('2026-01-31T08:00:00Z')`",
        "now > timestamp('2026-01-31T08:00:00Z')",
    ),
    "seconds for a duration": (
        "now - pod.metadata.creationTimestamp > 300",
        "38: `>` does not take duration and int; write `duration('300s')`",
        "now - pod.metadata.creationTimestamp > duration('300s')",
    ),
    "a duration as a text": (
        "now - pod.metadata.creationTimestamp > '5m'",
        "38: `>` does not take duration and string; write `duration('5m')`",
        "now - pod.metadata.creationTimestamp > duration('5m')",
    ),
    "a duration without quotes": (
        "now - pod.metadata.creationTimestamp > 5m",
        "40: syntax error: a number has no unit; write `duration('5m')`",
        "now - pod.metadata.creationTimestamp > duration('5m')",
    ),
    "seconds before a moment": (
        "pod.metadata.creationTimestamp > now - 3600",
        "38: `-` does not take timestamp and int; write `duration('3600s')`",
        "pod.metadata.creationTimestamp > now - duration('3600s')",
    ),
    "a moment for an age": (
        "duration('5m') > node.metadata.creationTimestamp",
        ("16: `>` does not take duration and timestamp; write `now - node.metadata.creationTimestamp` for an age"),
        "duration('5m') > now - node.metadata.creationTimestamp",
    ),
    "age()": (
        "node.metadata.creationTimestamp.age() > duration('1h')",
        "33: there is no function `age`; write `now - node.metadata.creationTimestamp`",
        "now - node.metadata.creationTimestamp > duration('1h')",
    ),
    "unix()": (
        "now.unix() > 1",
        "5: there is no function `unix`; write `int(now)`",
        "int(now) > 1",
    ),
    "subtract()": (
        "now.subtract(duration('1h')) > node.metadata.creationTimestamp",
        "5: there is no function `subtract`; write `now - duration('1h')`",
        "now - duration('1h') > node.metadata.creationTimestamp",
    ),
}

TABLES = {"amounts": AMOUNTS, "texts": TEXTS, "lists": LISTS, "operators": OPERATORS, "names": NAMES, "times": TIMES}
ROWS = {f"{kind}: {sentence}": row for kind, table in TABLES.items() for sentence, row in table.items()}


def _said(text: str, want: Want = BOOL) -> list[str]:
    try:
        check(text, RULES, want)
    except ExpressionError as refused:
        return [str(one) for one in refused.diagnostics]
    return []


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_one_thing_is_said_with_its_place_and_its_cure(row: Row) -> None:
    text, want, *_ = row
    assert _said(text) == [f"1:{want}"]


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_cure_shows_is_taken_by_the_checker(row: Row) -> None:
    _, said, *mended = row
    assert [_said(text) for text in mended] == [[]] * len(mended)
    hint = "" if "did you mean" in said else said.partition("; ")[2]
    shown = [part for found in re.findall("`([^`]+)`", hint) for part in found.split("...")]
    assert [part for part in shown if not any(part in text for text in mended)] == []


RESULTS: dict[str, tuple[str, Want, str, str]] = {
    "a truth for a score": ("node.spec.unschedulable", NUMBER, "a bool", "node.spec.unschedulable ? 100.0 : 0.0"),
    "a comparison for a score": ("free.cpu > 1.0", NUMBER, "a bool", "free.cpu > 1.0 ? 100.0 : 0.0"),
    "a text for a score": (
        "node.metadata.labels['a']",
        NUMBER,
        "a string",
        "double(node.metadata.labels['a'])",
    ),
    "a list for a score": ("pods", NUMBER, "a list<pod on a node>", "pods.size()"),
    "a quantity for a score": ("quantity('1')", NUMBER, "a quantity", "quantity('1').asApproximateFloat()"),
    "a duration for a score": ("now - now", NUMBER, "a duration", "(now - now).getSeconds()"),
    "all amounts for a score": ("free", NUMBER, "a map<string, double>", "free['cpu']"),
    "an optional for a filter": (
        "node.metadata.labels[?'a']",
        BOOL,
        "an optional<string>",
        "node.metadata.labels[?'a'].hasValue()",
    ),
    "an amount for a filter": ("free.cpu - 1.0", BOOL, "a double", "free.cpu - 1.0 > 0.0"),
    "a list for a filter": ("node.spec.taints", BOOL, "a list<Taint>", "node.spec.taints.size() > 0"),
    "a number for an annotation": ("1 + 2", STRING, "an int", "string(1 + 2)"),
    "an optional for an annotation": (
        "node.metadata.labels[?'a']",
        STRING,
        "an optional<string>",
        "node.metadata.labels[?'a'].orValue('')",
    ),
    "a list for an annotation": ("variables.zones", STRING, "a list<string>", "variables.zones.join(',')"),
}


@pytest.mark.parametrize(("text", "want", "given", "cure"), RESULTS.values(), ids=RESULTS)
def test_a_result_of_the_wrong_type_is_told_how_to_become_right(text: str, want: Want, given: str, cure: str) -> None:
    [said] = _said(text, want)
    assert said.startswith(f"1:1: {want.what} is wanted, this gives {given}; ")
    assert f"`{cure}`" in said
    assert _said(cure, want) == []


LEFT_AND_RIGHT = {
    "a > b": ("a", "b"),
    "x && a + 1 > b * 2 || y": ("a + 1", "b * 2"),
    "f(x, a > b)": ("a", "b"),
    "x ? a > b : c": ("a", "b"),
    "[y, 'a, b' > r'>' + c]": ("'a, b'", "r'>' + c"),
    "-a > -b": ("-a", "-b"),
    "a[?x].b > c.?d": ("a[?x].b", "c.?d"),
    "(x || a) > !b": ("(x || a)", "!b"),
}


@pytest.mark.parametrize(("text", "want"), LEFT_AND_RIGHT.items())
def test_the_sides_of_an_operator_are_found(text: str, want: tuple[str, str]) -> None:
    found = Excerpt(text, text.index(">"))
    assert (found.left, found.right) == want


def test_what_a_dot_can_follow_gets_brackets_only_if_it_needs_them() -> None:
    texts = ("a.b", "f(a + b)", "a[b + 1].?c", "'a + b'", "a + b", "!a")
    assert [parenthesised(text) for text in texts] == [*texts[:4], "(a + b)", "(!a)"]


def test_whatever_is_cut_off_something_is_said() -> None:
    for row in ROWS.values():
        for end in range(1, len(row[0])):
            for text in (row[0][:end], row[0][end:]):
                assert all(re.match(r"1:[1-9]\d*: \S", one) for one in _said(text)), text
