"""What expressions are asked about: pods, nodes and numbers, with much left out and much on the edge."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random
from types import SimpleNamespace
from typing import Any

from fairlead.cel.engine.evaluate import engine_inputs
from fairlead.cel.lowering.program import OF_NODE, OF_POD
from fairlead.cel.values.schema import element, messages
from fairlead.cel.values.structs import from_json
from fairlead.cel.values.value_types import Timestamp
from fairlead.policy.views.policy_data import Data

TEXTS = (
    "",
    "a",
    "b",
    "gpu",
    "a100",
    "true",
    "x y",
    "-7",
    "9223372036854775808",
    "é",
    "😀b",
    "2.5",
    "1h",
    "2020-01-01T00:00:00Z",
)
KEYS = ("a", "b", "gpu", "x/y", "", "cpu")
INTS = (0, 1, -1, 2, 5, 100, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))
DOUBLES = (0.0, -0.0, 1.0, 2.0, 0.5, -3.75, 1e300, float("inf"), float("-inf"), float("nan"), 9007199254740992.0)
DECLARED = ("load", "heat")  # data, and nothing else, has such names: by them it is told; there never is any heat
TIMES = ("1970-01-01T00:00:00Z", "2020-02-29T12:34:56.123456Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
_DEPTH = 5


@dataclass(frozen=True)
class Facts:
    """What is known when a rule is asked."""

    roots: Mapping[str, Any]

    @cached_property
    def of_pod(self) -> SimpleNamespace:
        return SimpleNamespace(**{name: self.roots[name] for name in OF_POD})

    @cached_property
    def of_node(self) -> SimpleNamespace:
        return SimpleNamespace(**{name: self.roots[name] for name in OF_NODE})

    @property
    def now(self) -> int:
        return Timestamp(self.roots["now"])

    @cached_property
    def for_engine(self) -> Mapping[str, Any]:
        return engine_inputs(self.roots)


@cache
def some_facts(count: int = 60) -> tuple[Facts, ...]:
    """Facts to choose from, always the same."""
    return tuple(_make(Random(seed)) for seed in range(count))


def _make(random: Random) -> Facts:
    roots: dict[str, Any] = {
        "pod": from_json("Pod", _message(random, "Pod", 0)),
        "node": from_json("Node", _message(random, "Node", 0)),
        "namespaceObject": from_json("Namespace", _message(random, "Namespace", 0)),
        "pods": [from_json("PlacedPod", _message(random, "PlacedPod", 0)) for _ in range(random.randrange(5))],
        "victim": from_json("PlacedPod", _message(random, "PlacedPod", 0)),
        "now": Timestamp(random.choice((0, 1_700_000_000_123_456_000, -1, 253_402_300_799_000_000_000))),
    }
    for name in ("free", "requested", "allocatable", "request"):
        roots[name] = {key: random.choice(DOUBLES) for key in KEYS if random.random() < 0.6}
    roots["data"] = Data({key: random.choice(DOUBLES) for key in (*KEYS, DECLARED[0]) if random.random() < 0.6})
    return Facts(roots)


def _message(random: Random, name: str, depth: int) -> dict[str, object]:
    fields = messages()[name]
    share = 0.45 if len(fields) < 20 else 0.25
    made = {}
    for field, type_ in fields.items():
        deep = depth == 0 or field in ("containers", "labels", "priority", "tolerations", "name")
        if random.random() < (0.9 if deep else share):
            value = _value(random, type_, depth + 1)
            if value is not None:
                made[field] = value
    return made


def _value(random: Random, type_: str, depth: int) -> object:
    match type_:
        case "string":
            return random.choice(TEXTS)
        case "int":
            return random.choice(INTS)
        case "bool":
            return random.random() < 0.5
        case "timestamp":
            return random.choice(TIMES)
        case "dyn":
            return random.choice((80, "http", 0, ""))
    inner = element(type_)
    if inner is None:
        return _message(random, type_, depth) if depth < _DEPTH else None
    if depth >= _DEPTH:
        return None
    if type_.startswith("list"):
        return [_value(random, inner, depth) for _ in range(random.randrange(3))]
    if inner == "string":
        return {key: random.choice(TEXTS) for key in KEYS if random.random() < 0.5}
    return {key: value for key in KEYS[:2] if (value := _value(random, inner, depth)) is not None}
