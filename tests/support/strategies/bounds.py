"""Parameters at each of their bounds and beyond, found by walking the model."""

import copy
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen

from fairlead.api.params import DataName, DeviceShareName, Params, PodText
from fairlead.api.values import Duration, Expression, Identifier, Quantity, Shape, ShortName, parse_duration

Path = tuple[str | int, ...]
Json = dict[str, Any]


@dataclass(frozen=True)
class Edge:
    """Parameters that differ from a sample in one place."""

    what: str
    path: Path
    params: Json
    fits: bool
    rivals: tuple[Json, ...] = ()
    """Other ways to be at the same bound: one of them has to be accepted."""
    leads: bool = False
    """Other fields may have to follow this one: it is enough when nothing is wrong with it."""


def edges(model: type[Params], sample: Json) -> Iterator[Edge]:
    """Every bound of the model, at the places that the sample fills; the sample has to fill every place."""
    yield from _of_object(model, sample, (), sample)


def _of_object(model: type[Params], sample: Json, path: Path, here: Mapping[str, object]) -> Iterator[Edge]:
    yield Edge("a field that there is not", (*path, "extra"), _put(sample, (*path, "extra"), 1), fits=False)
    aliases = {str(field.alias or name): field for name, field in model.model_fields.items()}
    assert set(here) == set(aliases), f"the sample has to fill all of {sorted(aliases)} at {path}, not {sorted(here)}"
    for alias, field in aliases.items():
        at = (*path, alias)
        if field.is_required():
            yield Edge("missing", at, _put(sample, at, None), fits=False)
        yield from _of_value(field.annotation, [*field.metadata], sample, at, here[alias])


def _of_value(kind: object, metadata: list[object], sample: Json, path: Path, here: object) -> Iterator[Edge]:
    kind, metadata = _plain(kind, metadata)
    if isinstance(kind, type) and issubclass(kind, Params):
        assert isinstance(here, dict)
        yield from _of_object(kind, sample, path, here)
    elif get_origin(kind) is tuple:
        assert isinstance(here, list), f"the sample has to fill {path}"
        assert here, f"the sample has to fill {path}"
        yield from _of_list(_bound(metadata, MaxLen), sample, path, here)
        yield from _of_value(get_args(kind)[0], [], sample, (*path, 0), here[0])
    elif get_origin(kind) is Literal:
        yield from (Edge(repr(one), path, _put(sample, path, one), fits=True, leads=True) for one in get_args(kind))
        yield Edge("no such choice", path, _put(sample, path, "Nonsense"), fits=False)
    elif kind is str:
        yield from _of_string(metadata, sample, path)
    elif kind is DataName:
        yield from _of_value(Identifier, [], sample, path, here)
    elif kind is PodText:
        yield from _of_value(Expression, [], sample, path, here)
    elif kind is Duration:
        yield from _of_duration(metadata, sample, path)
    elif kind is Quantity:
        yield from _of_quantity(sample, path)
    elif kind in (int, float):
        yield from _of_number(metadata, sample, path)
    else:
        assert get_origin(kind) is dict, f"nobody has said how to bound a {kind} at {path}"


def _plain(kind: object, metadata: list[object]) -> tuple[object, list[object]]:
    while True:
        if kind is DataName:
            kind = Identifier
        if kind is DeviceShareName:
            kind = ShortName
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            metadata = [*metadata, *more]
        elif get_origin(kind) in (UnionType, Union):
            kind = next(one for one in get_args(kind) if one is not NoneType)
        else:
            break
    return kind, [inner for one in metadata for inner in (one, *getattr(one, "metadata", ()))]


def _of_list(most: int | None, sample: Json, path: Path, here: list[object]) -> Iterator[Edge]:
    assert most is not None, f"the list {path} has no largest length"
    assert most <= 64, f"the list {path} may be {most} long"
    for size, fits in ((most, True), (most + 1, False)):
        made = [_distinct(copy.deepcopy(here[0]), name) for name in _names(sample, path, here[0], size)]
        edge = _put(sample, path, made)
        rivals = (_renamed(edge, here[0], made[0]),) if isinstance(here[0], str) else ()
        yield Edge(f"{size} items", path, edge, fits=fits, rivals=rivals)


def _names(sample: Json, path: Path, item: object, size: int) -> list[str]:
    """Different names, first those of a list of the sample that has the item's: it may have to be listed there."""
    name = item.get("name") if isinstance(item, dict) else None
    listed = next((one for one in sample.values() if isinstance(one, list) and name in one), [])
    return [*listed, *(f"{path[-1]}{index}".lower() for index in range(size))][:size]


def _renamed(sample: Any, old: object, new: object) -> Any:
    """The sample with a name changed wherever it stands."""
    if isinstance(sample, dict):
        return {key: _renamed(value, old, new) for key, value in sample.items()}
    if isinstance(sample, list):
        return [_renamed(value, old, new) for value in sample]
    return new if sample == old else sample


def _distinct(item: object, name: str) -> object:
    if not isinstance(item, dict):
        return name
    return item | {key: name for key in ("name", "key", "type") if key in item}


def _of_string(metadata: list[object], sample: Json, path: Path) -> Iterator[Edge]:
    most, least = _bound(metadata, MaxLen), _bound(metadata, MinLen)
    assert most is not None, f"the string {path} has no largest length"
    shaped = any(isinstance(one, Shape) for one in metadata)
    here: Any = sample
    for step in path:
        here = here[step]
    texts = ("a" * most, f"{'a' * (most - 2)}/a")
    at = [*(_put(sample, path, text) for text in texts), *(_renamed(sample, here, text) for text in texts)]
    yield Edge(f"{most} characters", path, at[0], fits=True, rivals=tuple(at[1:]))
    yield Edge(f"{most + 1} characters", path, _put(sample, path, "a" * (most + 1)), fits=False)
    if least:
        yield Edge("empty", path, _put(sample, path, ""), fits=False)
    if shaped:
        yield Edge("not of its form", path, _put(sample, path, "-€"), fits=False)
    yield Edge("a number", path, _put(sample, path, 1), fits=False)


def _of_duration(metadata: list[object], sample: Json, path: Path) -> Iterator[Edge]:
    [(low, high)] = [one.bounds for one in metadata if isinstance(one, Shape) and one.bounds]
    for text in (low, high):
        yield Edge(text, path, _put(sample, path, text), fits=True)
    for seconds in (parse_duration(low) - 1, parse_duration(high) + 1):
        yield Edge(f"{seconds}s", path, _put(sample, path, f"{seconds}s"), fits=False)
    for text in ("soon", "", "1.5h", "10"):
        yield Edge(repr(text), path, _put(sample, path, text), fits=False)


def _of_quantity(sample: Json, path: Path) -> Iterator[Edge]:
    for text in ("0", "500m", "1.5Gi", "999999999.999999999E"):
        yield Edge(text, path, _put(sample, path, text), fits=True)
    for wrong in ("", "-1", "1000000000", "1.", "1 Gi", "1KB", 1):
        yield Edge(repr(wrong), path, _put(sample, path, wrong), fits=False)


def _of_number(metadata: list[object], sample: Json, path: Path) -> Iterator[Edge]:
    assert not [one for one in metadata if isinstance(one, Gt | Lt)], f"{path}: the API server knows only <= and >="
    low, high = _bound(metadata, Ge), _bound(metadata, Le)
    assert low is not None, f"the number {path} has no smallest value"
    assert high is not None, f"the number {path} has no largest value"
    # One more than a huge float is the same float.
    below, above = min(low - 1, math.nextafter(low, -math.inf)), max(high + 1, math.nextafter(high, math.inf))
    for value, fits in ((low, True), (high, True), (below, False), (above, False)):
        yield Edge(str(value), path, _put(sample, path, value), fits=fits, leads=True)


def _bound(metadata: list[object], kind: type) -> int | None:
    found = [one for one in metadata if isinstance(one, kind)]
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower().replace("len", "length")
    return getattr(found[0], name) if found else None


def _put(sample: Json, path: Path, value: object) -> Json:
    """The sample with another value in one place."""
    made = copy.deepcopy(sample)
    spot: Any = made
    for step in path[:-1]:
        spot = spot[step]
    if value is None:
        del spot[path[-1]]
    else:
        spot[path[-1]] = value
    return made
