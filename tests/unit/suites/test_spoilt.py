"""Whatever stands in a suite, it is read or refused, and nothing breaks."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.parse import parse_params
from fairlead.cli.inputs.checker import Checker
from fairlead.suites.run import ask, run_case
from fairlead.suites.suite import Suite
from fairlead.suites.validate import field_errors

_EXAMPLES = Path(__file__).parents[3] / "examples"
_ODD: tuple[Any, ...] = (None, True, 0, -1.5, "", "x", "2027-01-01T00:00:00Z", [], {}, [1], {"a": {"b": 1}}, 10**30)
_SEEDS = 100


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from _places(one, (*path, key))


def _spoilt(suite: Any, rng: random.Random) -> Any:
    found = copy.deepcopy(suite)
    for path in rng.sample([*_places(found)][1:], rng.randint(1, 3)):
        holder = found
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(rng.choice(_ODD))
        except (KeyError, IndexError, TypeError):
            continue  # what held it is spoilt already
    return found


@pytest.mark.parametrize("name", ["gpu-class", "keep-long-jobs", "node-readiness", "night-batch"])
def test_a_spoilt_suite_is_run_or_refused(name: str) -> None:
    checker = Checker()
    checker.check(name, (_EXAMPLES / f"{name}.yaml").read_bytes())
    suite = yaml.safe_load((_EXAMPLES / "tests" / f"{name}.test.yaml").read_text())
    rng = random.Random(name)  # noqa: S311 - no secret
    refused = 0
    for _ in range(_SEEDS):
        spoilt = _spoilt(suite, rng)
        try:
            read = parse_params(spoilt, Suite)
        except InvalidObjectError:
            refused += 1
            continue
        said: list[FieldError] = [*field_errors(read)]
        if not said:
            said = [one for at in range(len(read.cases)) for one in run_case(read, at, checker.compiled, ask).faults]
        refused += bool(said)
        assert all(one.message for one in said)
    assert 0 < refused < _SEEDS
