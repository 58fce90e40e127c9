"""Runs unit tests and examples on each Python that is supported: of this machine, and of newer suites of Debian."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.dist import SUPPORTED, interpreters
from release.project import ROOT, ReleaseError, run, say, tool
from testbed import cache, packages, rootfs
from testbed.errors import ClusterError

SUITES = {"3.13": "trixie", "3.14": "forky"}
"""Suites of Debian by the Python that they have."""
_ENTER = """
set -e
root=$1; shift
for one in /proc /sys /dev /tmp "$CHECKOUT" "$CACHE" "$HOME/.cache/uv"; do
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
        told = [f"CHECKOUT={ROOT}", f"CACHE={cache.root()}"]
        enter = ("unshare", "--mount", "--propagation=private", "/bin/sh", "-c", _ENTER, "sh", self.root)
        return ["env", *told, *enter, *words]

    def __str__(self) -> str:
        where = f"of Debian {self.root.name}" if self.root else f"of this machine: {self.path}"
        return f"Python {self.version}, {where}"


def find(wanted: Iterable[str] = SUPPORTED) -> list[Interpreter]:
    """Return an interpreter for each version that there is or can be had."""
    there = interpreters(wanted)
    found = []
    for version in wanted:
        if path := there.get(version):
            found.append(Interpreter(version, path))
        elif suite := SUITES.get(version):
            try:
                found.append(Interpreter(version, Path("/usr/bin", f"python{version}"), _system(suite)))
            except ClusterError as error:
                say(f"Python {version} of Debian {suite} cannot be had here: {error}")
    return found


def _system(suite: str) -> Path:
    """Return the folder with a suite of Debian, made on the first call."""
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
    run(of.command(uv, "venv", "--quiet", "--no-project", f"--python={of.path}", folder))
    install: Sequence[str | Path] = [uv, "pip", "install", "--quiet", f"--python={python}"]
    run(of.command(*install, "--require-hashes", f"--requirement={ROOT / 'requirements-dev.lock'}"))
    run(of.command(*install, "--no-deps", "--no-build-isolation", "--editable", ROOT))
    return python


def test(of: Interpreter, tests: Sequence[str]) -> str:
    """Run the tests; return what was passed. Raises ReleaseError at the first failure."""
    python = environment(of)
    pytest = of.command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    passed = [_last(pytest, r"^\d+ passed.*")]
    examples = of.command(python.with_name("fairlead"), "test", ROOT / "examples" / "tests")
    passed.append(_last(examples, r"^\d+ cases in .*"))
    return "; ".join(passed)


def _last(command: Sequence[str | Path], pattern: str) -> str:
    """Run a command; return the last of its lines that match."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.findall(pattern, done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise ReleaseError(f"{words[-1]} failed:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return str(found[-1])


def main(versions: Sequence[str] = (), tests: Sequence[str] = ()) -> None:
    """Run them on each, and say at the end which it was."""
    wanted = versions or SUPPORTED
    lines, failed = [], []
    found = find(wanted)
    for one in found:
        say(f"{one}: running")
        try:
            lines.append(f"{one}: {test(one, tests or ['tests/unit'])}")
        except ReleaseError as error:
            say(str(error))
            failed.append(f"{one}: failed")
    missing = [version for version in wanted if version not in {one.version for one in found}]
    for line in (*lines, *failed, *(f"Python {version}: not tried, as it cannot be had here" for version in missing)):
        print(line)
    if failed or not found:
        raise ReleaseError("not all pass")
