"""Runs unit tests and examples on each Python that is supported: of this machine, and of newer suites of Debian."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.dist import SUPPORTED, interpreters
from release.project import ROOT, ReleaseError, output_of, run, say, tool
from testbed import cache, packages, rootfs
from testbed.errors import ClusterError

SUITES = {"3.13": "trixie", "3.14": "forky"}
"""Suites of Debian by the Python that they have."""
_MISSING = "Python {0} is not on this machine: install it, for example with `.venv/bin/uv python install {0}`"
_ENTER = """
set -e
root=$1; shift
for one in /proc /sys /dev /tmp "$CHECKOUT" "$HISTORY" "$CACHE" "$HOME/.cache/uv"; do
  mkdir -p "$one" "$root$one"
  mount --rbind "$one" "$root$one"
done
for one in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do cp --dereference "$one" "$root$one"; done
exec chroot "$root" /usr/bin/env --chdir="$CHECKOUT" "$@"
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, and where it runs."""

    version: str
    path: Path
    root: Path | None = None
    """Folder with the files of the system that it is of; None for this machine."""

    def command(self, *words: str | Path) -> list[str | Path]:
        """Return what runs a command in its system, in which checkout and caches are where they are here."""
        if self.root is None:
            return [*words]
        told = [f"CHECKOUT={ROOT}", f"HISTORY={_history(ROOT)}", f"CACHE={cache.root()}"]
        enter = ("unshare", "--mount", "--propagation=private", "/bin/sh", "-c", _ENTER, "sh", self.root)
        return ["env", *told, *enter, *words]

    def __str__(self) -> str:
        where = f"of Debian {self.root.name}" if self.root else f"of this machine ({self.path})"
        return f"Python {self.version} {where}"


def _history(checkout: Path) -> Path:
    """Return git's folder of a checkout, which lies elsewhere for a linked worktree; the checkout outside of git."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return Path(found or checkout)


def find(wanted: Iterable[str] = SUPPORTED) -> tuple[list[Interpreter], list[str]]:
    """Return an interpreter for each version that there is or can be had, and a line for each other with what to do."""
    there = interpreters(wanted)
    found, missing = [], []
    for version in wanted:
        if path := there.get(version):
            found.append(Interpreter(version, path))
        elif suite := SUITES.get(version):
            try:
                found.append(Interpreter(version, Path("/usr/bin", f"python{version}"), _system(suite)))
            except ClusterError as error:
                missing.append(f"{_MISSING.format(version)}. That of Debian {suite} cannot be had: {error}")
        else:
            missing.append(_MISSING.format(version))
    return found, missing


def _system(suite: str) -> Path:
    """Return the folder with a suite of Debian, made on the first call."""
    if sys.platform != "linux" or os.geteuid():
        raise ClusterError("only root on Linux can enter another system", cure="call this as root")
    packages.ensure(packages.IMAGE)
    say(f"Debian {suite}, for its Python, lies in {cache.root() / 'pythons'}, and is fetched the first time")
    folder, log = cache.root() / "pythons", cache.root() / "logs" / "pythons.log"
    with cache.locked("pythons", doing="making a system with another Python"):
        return rootfs.suite(suite, folder, log)


def environment(of: Interpreter) -> Path:
    """Make an environment from the lock with the checkout in it; return its Python."""
    folder = ROOT / "build" / "pythons" / of.version
    shutil.rmtree(folder, ignore_errors=True)
    uv, python = tool("uv"), folder / "bin" / "python"
    # With pip, by which tests fetch a Go toolchain where the system has none.
    run(of.command(uv, "venv", "--quiet", "--seed", "--no-project", f"--python={of.path}", folder))
    install: Sequence[str | Path] = [uv, "pip", "install", "--quiet", f"--python={python}"]
    run(of.command(*install, "--require-hashes", f"--requirement={ROOT / 'requirements-dev.lock'}"))
    run(of.command(*install, "--no-deps", "--no-build-isolation", "--editable", ROOT))
    return python


def test(of: Interpreter, tests: Sequence[str]) -> str:
    """Run the tests; return what passed. Raises ReleaseError at the first of the two commands that fails."""
    python = environment(of)
    exact = output_of(of.command(python, "-c", "import platform; print(platform.python_version())"))
    # Properties are tried with few examples: more of them find faults of the code, which are those of every Python.
    pytest = of.command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", *tests)
    examples = of.command(python.with_name("fairlead"), "test", ROOT / "examples" / "tests")
    passed = _last("tests", pytest, r"\d+ passed.*")
    checked = _last("examples", examples, r"\d+ cases in .*")
    return f"{exact}, tests: {passed}; examples: {checked}"


def _last(what: str, command: Sequence[str | Path], pattern: str) -> str:
    """Run a command, whose output is shown as it comes; return the last of its lines that match."""
    words = [str(word) for word in command]
    found = ""
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout or ():
            print(line, end="", file=sys.stderr, flush=True)
            found = line.strip() if re.match(pattern, line) else found
    if running.returncode or not found:
        raise ReleaseError(f"{what} failed")
    return found


def main(versions: Sequence[str] = (), tests: Sequence[str] = ()) -> None:
    """Run them on each, and print at the end which it was; one that cannot be had is an error, after the others ran."""
    wanted = versions or SUPPORTED
    if unknown := [version for version in wanted if version not in SUPPORTED]:
        named = " ".join(unknown)
        raise ReleaseError(f"PYTHONS={named!r}: those that are supported are {', '.join(SUPPORTED)}")
    found, missing = find(wanted)
    lines, failed = [], []
    for one in found:
        say(f"{one}: running")
        try:
            lines.append(f"{one}: {test(one, tests or ['tests/unit'])}")
        except ReleaseError as error:
            failed.append(f"{one}: {error}")
            say(failed[-1])
    for line in (*lines, *failed, *missing):
        print(line)
    if failed or missing:
        raise ReleaseError(f"{len(lines)} of {len(wanted)} Pythons were tried and pass")
