"""Builds the cluster's programs from Go modules into the cache, once for each version.

A program lies in a folder of its own whose name says its version and what it was built from, and appears there in
one piece. Two builds at once wait for each other.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from testbed import cache, toolchain
from testbed.errors import ClusterError
from testbed.versions import Program

_REPORT_EVERY_S = 10.0


def path(program: Program) -> Path:
    """Path of the program, which may not be built yet."""
    sources = [program.package, *(f"{name}={value}" for name, value in program.variables)]
    if program.platform:
        sources.append(program.platform)
    digest = hashlib.sha256("\n".join(sources).encode())
    for source in program.sources:
        digest.update(source.read_bytes())
    return cache.binaries() / program.name / f"{program.version}-{digest.hexdigest()[:10]}" / program.name


def build(programs: Iterable[Program]) -> dict[str, Path]:
    """Make sure that the programs are there; their paths by name."""
    wanted = [*programs]
    if any(not path(program).exists() for program in wanted):
        with cache.locked("build", doing="building"):
            shutil.rmtree(_temporary(), ignore_errors=True)  # of a build that was killed: nobody else builds now
            missing = sorted((one for one in wanted if not path(one).exists()), key=_built_with)
            for _, group in groupby(missing, key=_built_with):
                _build_together([*group])
    return {program.name: path(program) for program in wanted}


def _built_with(program: Program) -> tuple[str, str]:
    """The module and the platform: programs that share both are built by one command."""
    return str(program.module), program.platform


def _build_together(programs: list[Program]) -> None:
    module, platform = programs[0].module, programs[0].platform
    what = ", ".join(f"{program.name} {program.version}" for program in programs)
    variables = {variable for program in programs for variable in program.variables}
    flags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in sorted(variables))])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=_made(_temporary())) as folder:
        command = [
            str(toolchain.go()),
            "build",
            "-v",
            "-trimpath",
            "-ldflags",
            flags,
            "-o",
            f"{folder}/",
            *(program.package for program in programs),
        ]
        log = cache.root() / "logs" / f"build-{module.name}.log"
        _made(log.parent)
        with log.open("w") as output, _progress(what, log, began):
            failed = subprocess.run(
                command,
                cwd=module,
                env=environment(platform),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        if failed:
            raise ClusterError(
                f"building {what} failed (in {module})",
                log=log,
                cure="see that the Go module proxy answers and the disk has 5 GB free, and call this again",
            )
        for program in programs:
            _place(Path(folder) / built_name(program), path(program))
    print(f"built {what} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def built_name(program: Program) -> str:
    """Name that the go command gives the program of a package: its last folder that is not a major version."""
    package = program.package if program.package != "." else program.name
    return next(part for part in reversed(package.split("/")) if not re.fullmatch(r"v\d+", part))


def environment(platform: str = "") -> dict[str, str]:
    """The environment of the go command: nothing of the user's settings may change what is built."""
    system, _, architecture = platform.partition("/")
    kept = {name: value for name, value in os.environ.items() if name not in ("GOFLAGS", "GOWORK", "GOOS", "GOARCH")}
    return kept | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        **({"GOOS": system, "GOARCH": architecture} if platform else {}),
    }


def _place(built: Path, target: Path) -> None:
    partial = target.parent.with_name(f"{target.parent.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    built.rename(partial / target.name)
    partial.rename(target.parent)


@contextlib.contextmanager
def _progress(what: str, log: Path, began: float) -> Iterator[None]:
    print(f"building {what} (log: {log})", file=sys.stderr, flush=True)
    done = threading.Event()

    def report() -> None:
        while not done.wait(_REPORT_EVERY_S):
            lines = log.read_text(errors="replace").splitlines()
            compiled = sum("/" in line and not line.startswith("go: ") for line in lines)
            print(f"  {time.monotonic() - began:4.0f} s, {compiled} packages compiled", file=sys.stderr, flush=True)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


def _temporary() -> Path:
    return cache.root() / "tmp"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
