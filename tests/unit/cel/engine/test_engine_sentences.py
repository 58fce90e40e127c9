"""Sentences of the engine's evaluator that kinds are read from: an update that changes one fails here."""

import pytest
from cel_expr_python import cel

from fairlead.cel.engine import evaluate
from fairlead.cel.engine.environment import RULE, environment
from fairlead.cel.engine.evaluate import engine_inputs, kind_of
from fairlead.cel.values.structs import from_json

POD = {"metadata": {"labels": {}}, "spec": {"containers": [{"livenessProbe": {"httpGet": {}}}]}}

# an expression that provokes the sentence, and the beginning of the sentence
PINNED = {
    "duplicate key": ("{'a': 1, 'a': 2} == {}", "ALREADY_EXISTS: duplicate key in map"),
    "Iteration budget exceeded": ("lists.range(20000).all(x, true)", "INTERNAL: Iteration budget exceeded"),
    "vector::reserve": ("lists.range(-1) == []", "vector::reserve"),
    "Key not found in map": ("pod.metadata.labels['x'] == ''", 'NOT_FOUND: Key not found in map : "x"'),
    "Index error: index=": ("[1][5] == 1", "UNKNOWN: Index error: index=5 size=1"),
    "No matching overloads found": (
        "dyn(1) + dyn(1u) == 1",
        "UNKNOWN: No matching overloads found : _+_(int64, uint64)",
    ),
    "Index error: expected integer type": (
        "dyn([1])['a'] == 1",
        "UNKNOWN: Index error: expected integer type, got string",
    ),
    "Invalid map key type": ("{dyn(1.5): 1} == {}", "INVALID_ARGUMENT: Invalid map key type: 'double'"),
    "Invalid container type": ("dyn(1)['a'] == 1", "INVALID_ARGUMENT: Invalid container type: 'int'"),
    "Applying SELECT to non-message type": (
        "dyn(1).a == 1",
        "INVALID_ARGUMENT: Applying SELECT to non-message type",
    ),
    "integer overflow": ("9223372036854775807 + 1 == 1", "OUT_OF_RANGE: integer overflow"),
    "timestamp overflow": (
        "timestamp('9999-12-31T23:59:59Z') + duration('1h') == now",
        "OUT_OF_RANGE: timestamp overflow",
    ),
    "above maximum allowed": (
        "duration('315576000001s') == duration('1s')",
        'INVALID_ARGUMENT: Duration "87660000h1s"',
    ),
    "below minimum allowed": (
        "duration('-315576000001s') == duration('1s')",
        'INVALID_ARGUMENT: Duration "-87660000h1s"',
    ),
    "quantity out of range": ("quantity('9e999').sign() == 1", "UNKNOWN: quantity out of range: exponent too large"),
    "divide by zero": ("1 / 0 == 1", "INVALID_ARGUMENT: divide by zero"),
    "modulus by zero": ("1 % 0 == 1", "INVALID_ARGUMENT: modulus by zero"),
    "cannot convert": ("int('x') == 1", "INVALID_ARGUMENT: cannot convert string to int"),
    "conversion": ("bool('x') == true", "INVALID_ARGUMENT: Type conversion error from 'string' to 'bool'"),
    "out of int64 range": ("int(1e30) == 1", "OUT_OF_RANGE: double out of int64 range"),
    "out of uint64 range": ("uint(-1) == 1u", "OUT_OF_RANGE: int64 out of uint64 range"),
    "malformed UTF-8": ("string(b'\\xff') == ''", "INVALID_ARGUMENT: malformed UTF-8 bytes"),
    "invalid base64 data": ("base64.decode('!') == b''", "INVALID_ARGUMENT: invalid base64 data"),
    "optional.none() dereference": ("optional.none().value() == 1", "FAILED_PRECONDITION: optional.none() dereference"),
    "regular expression": ("'a'.matches('(')", "INVALID_ARGUMENT: invalid regular expression: missing ): ("),
    "invalid replacement string": (
        "regex.replace('a', 'a', '\\\\1') == ''",
        "INVALID_ARGUMENT: invalid replacement string",
    ),
    "unable to find descriptor for type URL": (
        "pod.spec.containers[0].livenessProbe.httpGet.port == 80",
        "INVALID_ARGUMENT: unable to find descriptor for type URL",
    ),
    "NOT_FOUND": ("dyn(pod).nothing == 1", "NOT_FOUND: no_such_field : nothing"),
}
NOT_PROVOKED = {"std::bad_alloc"}
"""Needs an expression that takes all memory where the system grants it."""


def _sentence(text: str) -> str:
    try:
        value = environment(RULE, {}).compile(text).eval(data=engine_inputs({"pod": from_json("Pod", POD)}))
    except (RuntimeError, ValueError) as error:
        return str(error)
    assert value.type() == cel.Type.ERROR
    return str(value.value())


@pytest.mark.parametrize(("words", "text", "sentence"), [(words, *row) for words, row in PINNED.items()], ids=PINNED)
def test_a_sentence_of_the_engine_is_pinned_with_its_kind(words: str, text: str, sentence: str) -> None:
    found = _sentence(text)
    assert found.startswith(sentence)
    assert words in found
    assert kind_of(found) is dict(evaluate._WORDS)[words]


def test_every_line_of_the_table_is_pinned() -> None:
    assert {words for words, _ in evaluate._WORDS} == PINNED.keys() | NOT_PROVOKED
