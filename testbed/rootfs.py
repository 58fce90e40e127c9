"""The base that the tests put the operator's image on: this machine's own distribution, with Python and pip.

Where no container registry answers there is no base image to pull, but there are packages to make one from.
"""

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

from testbed import cache
from testbed.errors import ClusterError

_PACKAGES = ("ca-certificates", "libstdc++6", "python3")
_TO_BUILD = ("python3-pip",)
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
    answer = subprocess.run(_SOURCES, capture_output=True, text=True, check=False)
    sources = sources_of(answer.stdout)
    if not sources:
        raise ClusterError("apt knows no packages of Debian or Ubuntu", cure="`apt-get update`, and call this again")
    is_foreign = architecture not in ("", _own_architecture())
    wanted = [*_PACKAGES, *([] if is_foreign else _TO_BUILD)]
    # Even what is kept must be named after all that is left out.
    filters = [*(f"path-exclude={one}" for one in _LEFT_OUT), *(f"path-include={one}" for one in _KEPT)]
    options = [
        f"--variant={'extract' if is_foreign else 'essential'}",
        f"--include={','.join(wanted)}",
        *([f"--architectures={architecture}"] if is_foreign else []),
        *(f"--dpkgopt={one}" for one in filters),
    ]
    key = hashlib.sha256("\n".join((sources, *options)).encode()).hexdigest()[:12]
    target = folder / f"base-{key}.tar"
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
