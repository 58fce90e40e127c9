"""Makes a folder that holds the command line with its own Python, and tries it: for CI, and as a plugin of kubectl."""

import ast
import gzip
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from release import dist, krew
from release.notices import notices
from release.project import DIST, ROOT, ReleaseError, commit_time, output_of, reproducible, run, say, semver, tool
from testbed.operator_image import own_architecture

NAME = "kubectl-fairlead"
_ONLY_TO_BUILD = frozenset({"altgraph", "macholib", "packaging", "pyinstaller-hooks-contrib", "setuptools"})
"""Packages beside PyInstaller, of whose program a part is in the bundle."""
_NOT_FOR_STRATEGIES = frozenset({"antigravity", "ensurepip", "idlelib", "lib2to3", "test", "this", "tkinter", "turtle"})
_ENTRY = "from fairlead.__main__ import run\n\nrun()\n"
_NEEDS_GLIBC = re.compile(rb"GLIBC_2\.(\d+)\b")


def platform_name() -> str:
    """Return operating system and architecture, as Go and krew call them: `linux-amd64`."""
    return f"{platform.system().lower()}-{own_architecture()}"


def command(python: Path, work: Path) -> list[str | Path]:
    """Return what freezes the command line that is installed beside a Python."""
    [ours] = python.parents[1].glob("lib/python3.*/site-packages/fairlead")
    return [
        *(python, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level=WARN", "--onedir", f"--name={NAME}"),
        *(f"--distpath={work / 'dist'}", f"--workpath={work / 'work'}", f"--specpath={work}"),
        # Strategies are found by listing their folder, the schema has texts from the source, and a message about a
        # package that is missing asks the metadata.
        *("--collect-submodules=fairlead", f"--add-data={ours}:fairlead", "--copy-metadata=fairlead"),
        *(f"--hidden-import={name}" for name in standard_library()),
        work / f"{NAME}.py",
    ]


def standard_library() -> list[str]:
    """Return what custom strategies may import, though nothing of Fairlead does."""
    names = {one for one in sys.stdlib_module_names if not one.startswith("_")} - _NOT_FOR_STRATEGIES
    return sorted(one for one in names if importlib.util.find_spec(one))


def build(folder: Path = DIST) -> Path:
    """Build the archive for this machine; return its path."""
    work = ROOT / "build" / "bundle"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    python = _environment(work / "environment", dist.build(folder).wheel)
    (work / f"{NAME}.py").write_text(_ENTRY)
    run(command(python, work), environment=reproducible())
    made = work / "dist" / NAME
    shutil.copy(ROOT / "LICENSE", made)
    (made / "THIRD_PARTY_LICENCES").write_text(_licences(work))
    archive = folder / f"{NAME}-{semver()}-{platform_name()}.tar.gz"
    pack(made, archive)
    return archive


def _environment(folder: Path, wheel: Path) -> Path:
    """Make an environment of what is bundled and what bundles; return its Python."""
    uv, python = tool("uv"), folder / "bin" / "python"
    run([uv, "venv", "--quiet", "--python", sys.executable, folder])
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
    locks = [f"--requirement={ROOT / name}" for name in ("requirements.lock", "requirements-bundle.lock")]
    run([*install, "--require-hashes", *locks])
    run([*install, "--no-deps", wheel])
    return python


def pack(folder: Path, archive: Path) -> None:
    """Write a folder to an archive, of plain files alone, as krew unpacks no others; all are of the commit's time."""

    def untimed(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = commit_time()
        return member

    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", dereference=True) as tar,
    ):
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            tar.inodes = {}  # type: ignore[attr-defined] # a second name of a file is a file
            tar.add(path, f"{folder.name}/{path.relative_to(folder)}", recursive=False, filter=untimed)


def _licences(work: Path) -> str:
    """Return under which licences all that is in the bundle may be passed on. Raises ReleaseError if one is unknown."""
    [packages] = work.glob("environment/lib/python3.*/site-packages")
    [table] = work.glob("work/*/COLLECT-00.toc")
    collected = ast.literal_eval(table.read_text())
    sources = {Path(source) for _, source, _ in entries(collected)}
    parts = [notices(packages, without=_ONLY_TO_BUILD), _of_python()]
    parts += [_headed(f"the system's {name}", text) for name, text in sorted(_of_system(sources, packages).items())]
    return "\n".join(parts)


def entries(collected: object) -> Iterator[tuple[str, str, str]]:
    """Yield the files that PyInstaller collected, from its table: name in the bundle, source and kind."""
    if isinstance(collected, tuple) and len(collected) == 3 and all(isinstance(one, str) for one in collected):
        yield collected
    elif isinstance(collected, tuple | list):
        for one in collected:
            yield from entries(one)


def _of_python() -> str:
    library = Path(sysconfig.get_path("stdlib"))
    own = [library / "LICENSE.txt", library / "LICENSE"]
    text = next((one.read_text() for one in own if one.exists()), "") or _of_package(library / "os.py")[1]
    return _headed(f"Python {platform.python_version()}", text)


def _of_system(sources: Iterable[Path], packages: Path) -> dict[str, str]:
    """Return the licences of libraries that are neither a package's nor Python's, by the system's package."""
    own = [packages.parents[2], ROOT, Path(sysconfig.get_path("stdlib")).resolve()]
    if sys.base_prefix != "/usr":
        own.append(Path(sys.base_prefix).resolve())
    foreign = (one for one in sources if one.is_absolute() and one.exists())
    libraries = {one.resolve() for one in foreign if not any(one.resolve().is_relative_to(home) for home in own)}
    return dict(_of_package(one) for one in sorted(libraries))


def _of_package(file: Path) -> tuple[str, str]:
    """Return the name and the licence of the system's package that a file is of."""
    unmerged = [file, Path("/", *file.parts[2:])] if file.parts[1:2] == ("usr",) else [file]
    for path in unmerged:
        asked = subprocess.run(["dpkg", "-S", str(path)], capture_output=True, text=True, check=False)
        if not asked.returncode:
            name = asked.stdout.partition(":")[0].partition(",")[0]
            return name, Path("/usr/share/doc", name, "copyright").read_text(errors="replace")
    raise ReleaseError(f"{file} would be in the bundle, and no package of the system says under which licence")


def _headed(title: str, text: str) -> str:
    return f"{'=' * 100}\n{title}\n{'=' * 100}\n\n{text.strip()}\n"


def glibc_of(folder: Path) -> str:
    """Return the lowest version of glibc that everything in a folder accepts; empty if nothing names one."""
    libraries = (one.read_bytes() for one in folder.rglob("*") if one.is_file())
    found = [int(minor) for one in libraries if one[:4] == b"\x7fELF" for minor in _NEEDS_GLIBC.findall(one)]
    return f"2.{max(found)}" if found else ""


def try_archive(archive: Path) -> str:
    """Run the tests of the examples from where it is unpacked; return what `version` says."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        program = Path(folder, NAME, NAME)
        run([program, "test", ROOT / "examples" / "tests"], environment={"HOME": folder, "PATH": "/nowhere"})
        if needs := glibc_of(Path(folder)):
            say(f"it needs glibc {needs} or newer")
        return output_of([program, "version"])


def main() -> None:
    """Build it, try it alone and as a plugin that krew installs, and write the manifest for krew."""
    archive = build()
    say(f"the tests of the examples, with no Python but its own: {try_archive(archive)}")
    manifest = krew.write()
    say("the same as a plugin that krew installs")
    krew.try_plugin(manifest, archive)
    for path in (archive, manifest):
        say(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
