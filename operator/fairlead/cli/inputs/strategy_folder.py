"""Custom strategies: the modules in a folder, which the owner of the operator's image fills.

They are imported as modules of one package, so that a file may import another one as `from .other import Name`.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from fairlead.cli.console.exits import CommandError
from fairlead.strategies.contract import Strategy
from fairlead.strategies.registry import StrategyError, installed, strategies_of

FOLDER: Final = Path("/opt/fairlead/strategies")
VARIABLE: Final = "FAIRLEAD_STRATEGIES"
_PACKAGE: Final = "fairlead_custom"


def custom_strategies() -> Mapping[str, Strategy]:
    """Return the custom strategies by name. Raises CommandError if a module is invalid."""
    try:
        with _nothing_written():
            found = strategies_of(_modules(), taken={one.name for one in installed()})
    except StrategyError as error:
        raise CommandError(str(error)) from None
    return {one.name: one for one in found}


def strategy_files() -> list[Path]:
    """Return the files of the folder's modules. Raises CommandError if the environment names no folder."""
    folder, named = _folder(), os.environ.get(VARIABLE)
    if named and not folder.is_dir():
        raise CommandError(f"{VARIABLE}: {named} is not a folder")
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [file for file in found if file.suffix == ".py" and not file.name.startswith(".")]  # editors make those


def _folder() -> Path:
    return Path(os.environ.get(VARIABLE) or FOLDER).absolute()


def _modules() -> Iterator[ModuleType]:
    for name in [one for one in sys.modules if one.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    package = ModuleType(_PACKAGE)
    package.__path__ = [str(_folder())]
    sys.modules[_PACKAGE] = package
    importlib.invalidate_caches()
    yield from map(_imported, strategy_files())


def _imported(file: Path) -> ModuleType:
    try:
        return importlib.import_module(f"{_PACKAGE}.{file.stem}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a file does, its author is told
        text = error.msg if isinstance(error, SyntaxError) else error  # which also says the line
        said = " ".join(f"{type(error).__name__}: {text}".split())
        raise StrategyError(f"{file}: cannot be imported: {_line(error, file)}{said}") from None


def _line(error: BaseException, file: Path) -> str:
    """Return the line of the file at which its import failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"line {error.lineno}: "
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(file)]
    return f"line {lines[-1]}: " if lines else ""


@contextmanager
def _nothing_written() -> Iterator[None]:
    """Keep Python from writing byte code into the folder, which it would take for newer than a quick edit."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
