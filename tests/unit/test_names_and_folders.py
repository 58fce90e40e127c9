"""What keeps the tree readable: small folders and modules, and one meaning for a name."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import fairlead

ROOT: Final = Path(fairlead.__file__).parent
PACKAGES: Final = sorted(one.parent for one in ROOT.glob("*/__init__.py"))
FOLDERS: Final = sorted(one.parent for one in ROOT.rglob("__init__.py"))
MODULES_MAX: Final = 14
LINES_MAX: Final = 300
MANY_MODULES: Final = {
    "api": "one model of the custom resource a module",
    "cli/commands": "one command a module",
    "cli/inputs": "one input of commands a module",
    "cli/reports": "the text or the data of one command a module",
    "policy/lint": "one kind of checks a module",
    "strategies/builtin": "one strategy a module",
}
"""Folders that may be larger, as they are lists of equals."""
LONG_MODULES: Final = {
    "render/rbac.py": "one table: all that the operator may do is read together",
    "policy/symbolic/terms.py": "one evaluation: what a term is, can be, and may still be are read together",
    "policy/nodes/measured_table.py": "one table: a value, its age, its entry and its publication are read together",
}
"""Modules that may be longer, each with what would be torn apart if it were cut."""
TESTS: Final = Path(__file__).parents[1]
SUPPORT: Final = TESTS / "support"
BESIDE: Final = {
    "unit": {"bench", "chart", "demo", "docs", "release", "support", "testbed"},
    "support": {
        "chart",
        "docs",
        "engine",
        "drills",
        "faults",
        "hostile_sources",
        "patterns",
        "soak",
        "spread",
        "stream",
    },
}
SAME_IN_EACH_COMMAND: Final = {"add_to", "run"}
DEFINED_TWICE: Final = {
    "Duration": "the field's word for the text in the API and for the value in CEL",
    "Quantity": "the field's word for the text in the API and for the value in CEL",
}
"""Types of the product that are defined twice all the same."""
ALIASES_OF_CLASSES: Final[Mapping[str, str]] = {
    "Clock": "a function that tells the time, and the client's, which also waits until a time",
    "Expression": "the field's word for the text in the API and for what it is compiled to",
}
"""Names of an alias and of a class all the same."""
NAMED_TWICE: Final = {
    "data": "a command has the name of what it shows, here of the model of that field",
    "decisions": "a command has the name of what it shows, here of what listeners hear of a call",
    "devices": "a command has the name of what it shows, here of the model of that field",
    "errors": "the errors of their own folder, in three that do not import each other",
    "last_good": "one store: a replica writes it, and commands read it with the rights of the user",
    "shadow": "a command has the name of what it shows, here of the part of a replica that counts it",
    "status": "a command has the name of what it shows, here of the model of that field",
}
"""Names of modules that two folders of the product have all the same, with the reason."""
MODULES: Final = sorted(ROOT.rglob("*.py"))
BESIDE_THE_PRODUCT: Final = sorted(
    module for folder in ("bench", "demo", "scripts", "testbed") for module in (TESTS.parent / folder).rglob("*.py")
)
"""Modules of programs that people who work on the product read as well."""
NAMES_NOTHING: Final = re.compile(
    r"(?:What|Who|Whose|Whom|How|Why|Where|When|Whether|It|They|Those|That|(?:Some|Every|Any|No)(?:body|one|thing))\b"
)
"""First words of a docstring that leave open what the thing is; ruff's D401 looks after the verbs of functions."""
SAYS_NOTHING: Final = {"one", "found", "held", "said", "told", "made", "given", "sight", "world", "about", "asked"}
"""Names that say nothing where they are read without their type, as parameters, attributes and functions are."""
DURATION: Final = re.compile(r"_?(?:timeout|deadline|interval|delay|pause|age|period|elapsed|grace|ttl)", re.IGNORECASE)


def _path(module: Path) -> str:
    return str(module.relative_to(next(one for one in (ROOT, TESTS, TESTS.parent) if module.is_relative_to(one))))


def test_packages_have_two_levels() -> None:
    assert all(len(one.relative_to(ROOT).parts) <= 2 for one in FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: str(one.relative_to(ROOT)))
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    """A folder or module beyond the usual size has one purpose all the same, and says which."""
    modules = [one for one in folder.glob("*.py") if one.name not in ("__init__.py", "__main__.py")]
    name = str(folder.relative_to(ROOT))
    assert len(modules) <= MODULES_MAX or name in MANY_MODULES, "two purposes are two folders"
    lines = {str(one.relative_to(ROOT)): len(one.read_text().splitlines()) for one in modules}
    assert {path: count for path, count in lines.items() if count > LINES_MAX and path not in LONG_MODULES} == {}


def test_each_reason_for_a_size_is_of_something_that_exists() -> None:
    assert all((ROOT / folder).is_dir() for folder in MANY_MODULES)
    assert all((ROOT / path).is_file() for path in LONG_MODULES)


@pytest.mark.parametrize("folder", ["unit", "support"])
def test_tests_and_their_helpers_mirror_the_product(folder: str) -> None:
    """What is no package of the product is about all of it, about the repository, or a program of the tests."""
    product = {one.name for one in PACKAGES} | {one.stem for one in ROOT.glob("*.py")}
    found = {one.name for one in (TESTS / folder).iterdir() if one.is_dir() and one.name != "__pycache__"}
    assert found - product == BESIDE[folder]
    assert {one.name for one in TESTS.glob("*.py")} == {"conftest.py"}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.name)
def test_a_name_means_one_thing_in_a_package(package: Path) -> None:
    assert _defined_twice(_definitions(package)) == {}


@pytest.mark.parametrize("root", [ROOT, SUPPORT], ids=["product", "helpers"])
def test_a_type_means_one_thing(root: Path) -> None:
    """Functions are called with their module in mind; a type is read far from its folder."""
    types = ((name, module) for name, module in _definitions(root) if name[0].isupper())
    assert _defined_twice(types).keys() - DEFINED_TWICE.keys() == set()


@pytest.mark.parametrize("root", [ROOT, SUPPORT], ids=["product", "helpers"])
def test_an_alias_has_not_the_name_of_a_class(root: Path) -> None:
    modules = [ast.parse(module.read_text()) for module in root.rglob("*.py")]
    classes = {one.name for tree in modules for one in tree.body if isinstance(one, ast.ClassDef)}
    aliases = {name for tree in modules for name in _aliases(tree)}
    assert classes & aliases - ALIASES_OF_CLASSES.keys() == set()


def _aliases(tree: ast.Module) -> Iterator[str]:
    """Yield the names of types that are assigned, such as `Key = tuple[str, str]`."""
    for one in tree.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp()):
                if re.match("[A-Z][a-z]", name):
                    yield name


def test_aliases_are_found() -> None:
    assert [*_aliases(ast.parse("Key = tuple[str, str]\nOne = int | None\nMAX = 3 | 4\nn = a[0]"))] == ["Key", "One"]


def test_each_type_that_may_be_defined_twice_is() -> None:
    assert DEFINED_TWICE.keys() <= _defined_twice(_definitions(ROOT)).keys()


def test_a_module_means_one_thing() -> None:
    """A traceback, an import and a reading path are read by the module's name; a second one of that name misleads."""
    assert {name for name, count in _module_names().items() if count > 1} == NAMED_TWICE.keys()


def _module_names() -> Counter[str]:
    return Counter(one.stem for one in MODULES if not one.stem.startswith("__"))


def test_a_name_that_is_defined_twice_is_found() -> None:
    found = [("Entry", "a.py"), ("Entry", "b.py"), ("run", "a.py"), ("run", "b.py"), ("other", "a.py")]
    assert _defined_twice(found) == {"Entry": ["a.py", "b.py"]}


def _definitions(package: Path) -> Iterator[tuple[str, str]]:
    for module in sorted(package.rglob("*.py")):
        for one in ast.parse(module.read_text()).body:
            match one:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                    pass
                case _:
                    continue
            if not name.startswith("_"):
                yield name, str(module.relative_to(package.parent))


def _defined_twice(found: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    places = defaultdict[str, list[str]](list)
    for name, module in found:
        places[name].append(module)
    return {name: all_ for name, all_ in places.items() if len(all_) > 1 and name not in SAME_IN_EACH_COMMAND}


@pytest.mark.parametrize("module", [*MODULES, *sorted(SUPPORT.rglob("*.py")), *BESIDE_THE_PRODUCT], ids=_path)
def test_docstrings_say_what_a_thing_is_or_does(module: Path) -> None:
    assert [*_vague(ast.parse(module.read_text()))] == []


@pytest.mark.parametrize("module", MODULES, ids=_path)
def test_durations_carry_their_unit(module: Path) -> None:
    assert [*_without_unit(ast.parse(module.read_text()))] == []


@pytest.mark.parametrize("module", MODULES, ids=_path)
def test_parameters_say_what_they_are(module: Path) -> None:
    functions = [
        one
        for one in ast.walk(ast.parse(module.read_text()))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = [(one.name, arg.arg) for one in functions for arg in (*one.args.args, *one.args.kwonlyargs)]
    assert [(function, name) for function, name in names if name in SAYS_NOTHING] == []


@pytest.mark.parametrize("module", [*MODULES, *sorted(SUPPORT.rglob("*.py"))], ids=_path)
def test_attributes_and_functions_say_what_they_are(module: Path) -> None:
    assert [name for name in _members(ast.parse(module.read_text())) if name in SAYS_NOTHING] == []


def test_members_are_fields_methods_attributes_and_functions() -> None:
    tree = ast.parse("class A:\n x: int\n y = 1\n def f(self):\n  self.z = 1\n  a = 1\nasync def g(): b = 1\nv = 1")
    assert {*_members(tree)} == {"x", "y", "f", "z", "g"}


def test_what_is_vague_or_without_unit_is_found() -> None:
    tree = ast.parse('class A:\n    """What it is."""\n    pause: float = 1\n\ndef f(age: int, age_s: int): ...')
    assert ([*_vague(tree)], [*_without_unit(tree)]) == (["What it is."], ["pause", "age"])


def _vague(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(one) or ""
            if NAMES_NOTHING.match(text):
                yield text.partition("\n")[0]


def _members(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        match one:
            case ast.Module(body=body) | ast.ClassDef(body=body):
                yield from (part.name for part in body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
        if isinstance(one, ast.ClassDef):
            targets = (part.target for part in one.body if isinstance(part, ast.AnnAssign))
            values = (target for part in one.body if isinstance(part, ast.Assign) for target in part.targets)
            yield from (target.id for target in (*targets, *values) if isinstance(target, ast.Name))


def _without_unit(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        match one:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=of):
                pass
            case ast.arg(arg=name, annotation=ast.expr() as of):
                pass
            case _:
                continue
        if DURATION.fullmatch(name) and re.search(r"\b(?:int|float)\b", ast.unparse(of)):
            yield name
