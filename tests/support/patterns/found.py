"""All patterns of Python's `re` in the product: what its modules hold, and what stands in calls such as `re.sub`."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import fairlead

EACH, MATCH, FULLMATCH = "each", "match", "fullmatch"
_HOWS = {**dict.fromkeys(("search", "finditer", "findall", "sub", "subn"), EACH), MATCH: MATCH, FULLMATCH: FULLMATCH}
_FLAGS = {"match": 2, "fullmatch": 2, "search": 2, "finditer": 2, "findall": 2, "sub": 4, "subn": 4, "split": 3}


class Found(NamedTuple):
    """A pattern, where it stands, and how it is looked for."""

    where: str
    pattern: re.Pattern[Any]
    how: str


class Unknown(NamedTuple):
    """A call with a pattern that is put together only when it runs."""

    where: str
    source: str


@cache
def modules() -> Mapping[str, ModuleType]:
    """All of the product's, by their names."""
    names = [one.name for one in pkgutil.walk_packages(fairlead.__path__, "fairlead.")]
    return {name: importlib.import_module(name) for name in names if not name.endswith("__main__")}


@cache
def _trees() -> Mapping[str, ast.Module]:
    return {name: ast.parse(inspect.getsource(module)) for name, module in modules().items()}


def module_patterns() -> Iterator[Found]:
    """Yield the patterns that are made with their module."""
    seen = set[int]()
    for module_name, module in modules().items():
        for name, value in vars(module).items():
            for attribute, pattern in _within(value, seen):
                for how in sorted(_hows(module_name, name, attribute)):
                    yield Found(f"{module_name}.{name}", pattern, how)


def _within(value: Any, seen: set[int], attribute: str = "") -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns in a value, each with the attribute of an object of ours that holds it."""
    if isinstance(value, re.Pattern):  # of which `re` makes one for all who write the same
        yield attribute, value
    if id(value) in seen or isinstance(value, str | bytes | int | float | re.Pattern | ModuleType | None):
        return
    seen.add(id(value))
    inner: list[Any] = []
    named: dict[str, Any] = {}
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, tuple | list | set | frozenset):
        inner = list(value)
    elif isinstance(value, type):
        inner = list(vars(value).values()) if value.__module__.startswith("fairlead") else []
    elif inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
        inner = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
    elif hasattr(value, "__metadata__"):
        inner = list(value.__metadata__)
    elif dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    elif type(value).__module__.startswith("fairlead"):
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        named = {name: getattr(value, name, None) for name in names}
    for one in inner:
        yield from _within(one, seen, attribute)
    for name, one in named.items():
        yield from _within(one, seen, name)


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises if it is empty
    except ValueError:
        return False
    return True


class _Called(NamedTuple):
    """Names on which a module calls the methods of patterns."""

    imported: frozenset[str]
    methods: frozenset[tuple[str, str]]
    loops: frozenset[tuple[str, str]]
    """What is looped over, and what its items are called."""


@cache
def _called() -> Mapping[str, _Called]:
    made = {}
    for module, tree in _trees().items():
        nodes = list(ast.walk(tree))
        imported = {one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
        attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in _HOWS]
        loops = [node for node in nodes if isinstance(node, ast.For | ast.comprehension)]
        made[module] = _Called(
            frozenset(imported),
            frozenset((ast.unparse(node.value), node.attr) for node in attributes),
            frozenset(
                (over.id, item.id)
                for loop in loops
                for over in ast.walk(loop.iter)
                for item in ast.walk(loop.target)
                if isinstance(over, ast.Name) and isinstance(item, ast.Name)
            ),
        )
    return made


def _hows(module: str, name: str, attribute: str) -> set[str]:
    """Return the methods with which the patterns under a name look: its own, or those of a loop's variable.

    Where that cannot be told, by all methods that are called on any variable there.
    """
    own, looped, others = set[str](), set[str](), set[str]()
    for other, (imported, methods, loops) in _called().items():
        if attribute:
            own |= {_HOWS[method] for holder, method in methods if holder.endswith(f".{attribute}")}
        elif other == module or name in imported:
            items = {item for over, item in loops if over == name}
            known = {"re", *vars(modules()[other])}
            own |= {_HOWS[method] for holder, method in methods if holder.partition("[")[0] == name}
            looped |= {_HOWS[method] for holder, method in methods if holder in items}
            others |= {_HOWS[method] for holder, method in methods if holder.partition("[")[0] not in known}
    return own or looped or others or {EACH}


def inline() -> Iterator[Found | Unknown]:
    """Yield the patterns in calls of `re`'s functions."""
    for module_name, tree in _trees().items():
        names = vars(modules()[module_name])
        within = {
            call
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for call in ast.walk(function)
            if isinstance(call, ast.Call)
        }
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function), args=[first, *_]) if (
                    function in _FLAGS or function == "compile"
                ):
                    if function == "compile" and node not in within:
                        continue  # its module holds it
                    where = f"{module_name}:{node.lineno}"
                    try:
                        pattern = _evaluated(first, names)
                        flags = _flags(node, function, names)
                        yield Found(where, re.compile(pattern, flags), _HOWS.get(function, EACH))
                    except NameError:
                        yield Unknown(where, ast.unparse(first))


def _flags(node: ast.Call, function: str, names: dict[str, Any]) -> int:
    given = next((one.value for one in node.keywords if one.arg == "flags"), None)
    at = _FLAGS.get(function, 1)
    given = given or (node.args[at] if len(node.args) > at else None)
    return 0 if given is None else int(_evaluated(given, names))


def _evaluated(expression: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(expression), "<pattern>", "eval"), names)  # noqa: S307 - it is our own code
