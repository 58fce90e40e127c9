"""The image of the operator, built from the Dockerfile as users build it.

Only what they fetch is another: the base is made here, and the wheels, which the lock files name with their hashes,
are fetched outside, so that a machine that reaches package registries alone can build it.
"""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed import buildah, cache, packages, rootfs
from testbed.errors import ClusterError
from testbed.phases import say

NAME = "fairlead.dev/testbed/fairlead"
CHECKOUT = Path(__file__).parents[1]
_LOCKS = ("requirements.lock", "requirements-build.lock")
_KEPT = 3


@dataclass(frozen=True, slots=True)
class Image:
    """An image that can be loaded."""

    tag: str
    archive: Path


def build(checkout: Path = CHECKOUT) -> Image:
    """The image of a checkout, built unless it is there. Its tag says what it was built from."""
    packages.ensure(packages.IMAGE)
    folder = cache.root() / "images"
    log = cache.root() / "logs" / "image.log"
    for each in (folder, log.parent):
        each.mkdir(parents=True, exist_ok=True)
    with cache.locked("image", doing="building an image"):
        log.write_text("")
        began = time.monotonic()
        base = rootfs.build(folder, log)
        digest = digest_of(checkout, [base.name])
        image = Image(f"{NAME}:{digest}", folder / f"operator-{digest}.tar")
        if not image.archive.exists():
            say(f"building the image of the operator (log: {log})")
            _build(checkout, base, image, log)
            say(f"built the image of the operator in {time.monotonic() - began:.0f} s")
        image.archive.touch()
        _keep(folder.glob("operator-*.tar"))
    return image


def context_of(dockerignore: str) -> list[str]:
    """What the Dockerfile can see: its .dockerignore leaves out all but what it names."""
    return sorted(line.removeprefix("!") for line in dockerignore.splitlines() if line.startswith("!"))


def digest_of(checkout: Path, others: Iterable[str]) -> str:
    """What says of which files an image is."""
    digest = hashlib.sha256("\n".join(others).encode())
    for name in ("Dockerfile", ".dockerignore", *context_of((checkout / ".dockerignore").read_text())):
        found = [checkout / name, *sorted((checkout / name).rglob("*"))]
        for file in (one for one in found if one.is_file() and "__pycache__" not in one.parts):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(checkout)} {content}\n".encode())
    return digest.hexdigest()[:12]


def _build(checkout: Path, base: Path, image: Image, log: Path) -> None:
    wheels = _wheels(checkout, rootfs.python_of(base), base.parent, log)
    partial = image.archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with buildah.opened(base.parent / "store", log) as store:
        ground = f"localhost/{base.stem}"
        if not store.has(ground):
            store.unpack(base, ground)
        store.build(
            checkout, f"localhost/{image.archive.stem}", arguments={"BASE": ground}, contexts={"wheels": wheels}
        )
        store.save(f"localhost/{image.archive.stem}", partial, name=image.tag)
    partial.rename(image.archive)


def _wheels(checkout: Path, python: str, folder: Path, log: Path) -> Path:
    """The wheels that the locks name, for that Python."""
    locks = [checkout / name for name in _LOCKS]
    key = hashlib.sha256(b"".join([python.encode(), *(lock.read_bytes() for lock in locks)])).hexdigest()[:12]
    target = folder / f"wheels-{key}"
    if not target.exists():
        partial = target.with_suffix(".partial")
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
        ]
        command += ["--only-binary=:all:", f"--python-version={python}", f"--dest={partial}"]
        command += [f"--requirement={lock}" for lock in locks]
        with log.open("a") as output:
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode:
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
