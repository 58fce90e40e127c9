"""The conformance data of CEL's specification, from its Go module."""

import shutil
from pathlib import Path

from testbed import cache, go_modules
from testbed.versions import CEL_SPEC, MODULES

_DATA = Path("tests/simple/testdata")


def folder() -> Path:
    """The module's test data and generated code, obtained on the first call."""
    found = cache.root() / "cel-spec" / CEL_SPEC
    if not found.exists():
        with cache.locked("cel-spec", doing="fetching CEL's conformance data"):
            if not found.exists():
                _fetch(found)
    return found


def data() -> list[Path]:
    """The files of test cases, in order."""
    return sorted((folder() / _DATA).glob("*.textproto"))


def _fetch(target: Path) -> None:
    module = go_modules.download("cel.dev/expr", of=MODULES / "cel-spec")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for file in (*module.rglob("*.pb.go"), *(module / _DATA).glob("*.textproto")):
        copy = partial / file.relative_to(module)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    partial.rename(target)
