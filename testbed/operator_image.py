"""The image of the operator, built from the Dockerfile as users build it.

Only what they fetch is another: the base is made here, and the wheels, which the lock files name with their hashes,
are fetched outside, so that a machine that reaches package registries alone can build it.
"""

import hashlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testbed import buildah, cache, packages, rootfs
from testbed.errors import ClusterError
from testbed.phases import say

NAME = "fairlead.dev/testbed/fairlead"
LABEL = "org.opencontainers.image."
CHECKOUT = Path(__file__).parents[1]
_LOCKS = ("requirements.lock", "requirements-build.lock")
_KEPT = 4
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""What the image may run on: the name that registries use, and the one in the names of wheels."""
_ABIS = (
    *("manylinux_2_34", "manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux_2_12"),
    *("manylinux2010", "manylinux_2_5", "manylinux1", "linux"),
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image that can be loaded."""

    tag: str
    archive: Path


def own_architecture() -> str:
    """Name of this machine's architecture in registries."""
    machine = platform.machine().lower()  # macOS says arm64, Windows AMD64
    return next((name for name, other in MACHINES.items() if machine in (name, other)), "amd64")


@dataclass(frozen=True, slots=True)
class Bases:
    """Bases of the Dockerfile: archives of files, the same one where the image is for this machine."""

    builder: Path
    runtime: Path


def build(
    checkout: Path = CHECKOUT,
    *,
    architecture: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
    name: str = "",
    again: Path | None = None,
) -> Image:
    """The image of a checkout, built unless it is there. Its tag says what it was built from.

    An architecture other than this machine's needs no emulation. The labels are the Dockerfile's last arguments. A name
    of the caller's own has its tag. `again` is a folder in which all is built anew, whatever was built before.
    """
    architecture = architecture or own_architecture()
    packages.ensure(packages.IMAGE)
    folder = cache.root() / "images"
    log = cache.root() / "logs" / "image.log"
    for each in (folder, log.parent):
        each.mkdir(parents=True, exist_ok=True)
    with cache.locked("image", doing="building an image"):
        log.write_text("")
        began = time.monotonic()
        bases = Bases(rootfs.build(folder, log), rootfs.build(folder, log, architecture=architecture))
        digest = digest_of(checkout, [bases.builder.name, bases.runtime.name, *map(str, labels.items()), name])
        image = Image(name or f"{NAME}:{digest}", (again or folder) / f"operator-{digest}.tar")
        if not image.archive.exists():
            say(f"building the image of the operator (log: {log})")
            store = (again or folder) / "store"
            _build(checkout, bases, image, store, log, architecture=architecture, labels=labels)
            say(f"built the image of the operator in {time.monotonic() - began:.0f} s")
        image.archive.touch()
        _keep(folder.glob("operator-*.tar"))
    return image


def context_of(dockerignore: str) -> list[str]:
    """Files that the Dockerfile can see: its .dockerignore leaves out all but what it names."""
    return sorted(line.removeprefix("!") for line in dockerignore.splitlines() if line.startswith("!"))


def digest_of(checkout: Path, others: Iterable[str]) -> str:
    """Digest of the files that an image is made of."""
    digest = hashlib.sha256("\n".join(others).encode())
    for name in ("Dockerfile", ".dockerignore", *context_of((checkout / ".dockerignore").read_text())):
        found = [checkout / name, *sorted((checkout / name).rglob("*"))]
        for file in (one for one in found if one.is_file() and "__pycache__" not in one.parts):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(checkout)} {content}\n".encode())
    return digest.hexdigest()[:12]


def _build(
    checkout: Path, bases: Bases, image: Image, store: Path, log: Path, *, architecture: str, labels: Mapping[str, str]
) -> None:
    folder = bases.builder.parent
    fetched = wheels(checkout, rootfs.python_of(bases.runtime), folder, log, architecture)
    partial = image.archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with buildah.opened(store, log) as opened:
        for base, of in ((bases.builder, own_architecture()), (bases.runtime, architecture)):
            if not opened.has(f"localhost/{base.stem}"):
                opened.unpack(base, f"localhost/{base.stem}", architecture=of)
        arguments = {
            "BASE": f"localhost/{bases.builder.stem}",  # of a checkout that knows one base
            "BUILDER": f"localhost/{bases.builder.stem}",
            "RUNTIME": f"localhost/{bases.runtime.stem}",
            "BUILDPLATFORM": f"linux/{own_architecture()}",
            **labels,
        }
        built = f"localhost/{image.archive.stem}"
        named = {f"{LABEL}{key.lower()}": value for key, value in labels.items()}
        opened.build(
            checkout, built, arguments=arguments, contexts={"wheels": fetched}, architecture=architecture, labels=named
        )
        opened.save(built, partial, name=image.tag)
    partial.rename(image.archive)


def wheels(checkout: Path, python: str, folder: Path, log: Path, architecture: str) -> Path:
    """The wheels that the locks name, for that Python and architecture; those that build are for this machine."""
    locks = [checkout / name for name in _LOCKS]
    is_own = architecture == own_architecture()
    parts = [python.encode(), b"" if is_own else architecture.encode(), *(lock.read_bytes() for lock in locks)]
    target = folder / f"wheels-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
    if not target.exists():
        partial = target.with_suffix(".partial")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--only-binary=:all:", f"--python-version={python}", f"--dest={partial}"]
        foreign = [] if is_own else [f"--platform={abi}_{MACHINES[architecture]}" for abi in _ABIS]
        for lock, platforms in zip(locks, (foreign, []), strict=True):
            with log.open("a") as output:
                download = [*command, *platforms, f"--requirement={lock}"]
                failed = subprocess.run(download, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
            if failed.returncode:
                raise ClusterError(
                    "the wheels of the lock files could not be fetched",
                    log=log,
                    cure="see that a package registry for Python answers, and call this again",
                )
        partial.rename(target)
    return target


def _keep(archives: Iterable[Path]) -> None:
    """The last ones that were used: each has hundreds of megabytes."""
    for old in sorted(archives, key=lambda one: one.stat().st_mtime, reverse=True)[_KEPT:]:
        old.unlink()
