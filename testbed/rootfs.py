"""The base that the tests put the operator's image on: this machine's own distribution, with Python and pip.

Where no container registry answers there is no base image to pull, but there are packages to make one from.
"""

import hashlib
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from testbed import cache
from testbed.errors import ClusterError

_PACKAGES = ("ca-certificates", "libstdc++6", "python3")
_TO_BUILD = ("python3-pip",)
_TO_TEST = (*_PACKAGES, "git", "make", "openssl", "procps", "prometheus")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
_KEPT = ("/usr/share/doc/*/copyright",)  # under which the packages may be passed on
_SOURCES = (
    "apt-get",
    "indextargets",
    "--format",
    "$(ORIGIN) deb $(SITE) $(RELEASE) $(COMPONENT)",
    "Created-By: Packages",
)


def build(folder: Path, log: Path, *, architecture: str = "") -> Path:
    """The archive of its files, made on the first call and again when this machine gets packages from elsewhere.

    That of another architecture is unpacked and not set up, as none of its programs can run here, and has no pip.
    """
    if architecture not in ("", _own_architecture()):
        return pack(folder, log, "base", _PACKAGES, variant="extract", architecture=architecture)
    return pack(folder, log, "base", [*_PACKAGES, *_TO_BUILD])


def pack(
    folder: Path,
    log: Path,
    name: str,
    packages: Sequence[str],
    *,
    variant: Literal["essential", "extract"] = "essential",
    architecture: str = "",
) -> Path:
    """The archive of the files of packages: a small system that has them set up, or nothing but them, extracted.

    It is made on the first call and again when this machine gets packages from elsewhere.
    """
    answer = subprocess.run(_SOURCES, capture_output=True, text=True, check=False)
    sources = sources_of(answer.stdout)
    if not sources:
        raise ClusterError("apt knows no packages of Debian or Ubuntu", cure="`apt-get update`, and call this again")
    # Even what is kept must be named after all that is left out.
    filters = [*(f"path-exclude={one}" for one in _LEFT_OUT), *(f"path-include={one}" for one in _KEPT)]
    options = [
        f"--variant={variant}",
        f"--include={','.join(packages)}",
        *([f"--architectures={architecture}"] if architecture else []),
        *(f"--dpkgopt={one}" for one in filters),
    ]
    key = hashlib.sha256("\n".join((sources, *options)).encode()).hexdigest()[:12]
    target = folder / f"{name}-{key}.tar"
    if not target.exists():
        partial, list_file = target.with_suffix(".partial.tar"), folder / "sources.list"
        cache.write(list_file, sources)
        command = ["mmdebstrap", *options, "", str(partial), str(list_file)]
        with log.open("a") as output:
            failed = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        if failed.returncode:
            partial.unlink(missing_ok=True)
            raise ClusterError(
                "mmdebstrap failed", log=log, cure="see that apt can install packages, and call this again"
            )
        partial.rename(target)
    return target


def suite(name: str, folder: Path, log: Path) -> Path:
    """Folder with another suite of Debian and its Python, made on the first call."""
    folder /= hashlib.sha256(" ".join(_TO_TEST).encode()).hexdigest()[:10]
    target = folder / name
    if not target.exists():
        answer = subprocess.run(_SOURCES, capture_output=True, text=True, check=False)
        sources = sources_of_suite(answer.stdout, name)
        if not sources:
            raise ClusterError(f"apt knows no packages of Debian, so there is no {name}", cure="run it on Debian")
        partial, list_file = target.with_suffix(".partial"), folder / f"{name}.list"
        shutil.rmtree(partial, ignore_errors=True)
        cache.write(list_file, sources)
        # A suite that is not released yet names a day after which its lists are void, and mirrors may be older.
        options = [
            "--variant=essential",
            f"--include={','.join(_TO_TEST)}",
            '--aptopt=Acquire::Check-Valid-Until "false"',
        ]
        command = ["mmdebstrap", *options, name, str(partial), str(list_file)]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            failed = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        if failed.returncode:
            shutil.rmtree(partial, ignore_errors=True)
            raise ClusterError(
                "mmdebstrap failed", log=log, cure="see that apt can install packages, and call this again"
            )
        partial.rename(target)
    return target


def sources_of_suite(listed: str, suite: str) -> str:
    """Return where Debian's packages come from, with another suite in place of this machine's."""
    lines = (line.split() for line in listed.splitlines())
    sites = {(site, part) for origin, _, site, release, part in lines if origin == "Debian" and release.isalpha()}
    return "".join(f"deb {site} {suite} {part}\n" for site, part in sorted(sites) if part == "main")


def _own_architecture() -> str:
    asked = ["dpkg", "--print-architecture"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def sources_of(listed: str) -> str:
    """Of all lines `ORIGIN deb ...` those of the distribution: what others publish is no part of a base."""
    lines = (line.partition(" ") for line in listed.splitlines())
    return "".join(sorted({f"{entry}\n" for origin, _, entry in lines if origin in ("Debian", "Ubuntu")}))


def python_of(archive: Path) -> str:
    """The version of its Python, as `3.11`."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if found := re.fullmatch(r"\./usr/bin/python(3\.\d+)", member.name):
                return found[1]
    raise ClusterError(f"{archive} holds no Python", cure="remove it, and call this again")
