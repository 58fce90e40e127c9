"""Runs buildah: a Dockerfile becomes an archive, without a container engine.

What was built before is kept in a store, so that a change of the source does not install everything anew. Mounts are
made in a namespace of each command's own, so that one that is killed leaves none.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO
from uuid import uuid4

from testbed.errors import ClusterError

_STORE_MAX = 4 << 30
_PRIVATELY = ("unshare", "--mount", "--propagation=private")
_OVERLAY = 'cd "$0" && mkdir low up work all && mount -t overlay -o lowerdir=low,upperdir=up,workdir=work overlay all'

_UNPACK = """FROM scratch
ADD {archive} /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""


@dataclass(frozen=True, slots=True)
class Buildah:
    """A store of images, for as long as one builds."""

    options: tuple[str, ...]
    keeps_steps: bool
    """So that what did not change is not built again."""
    log: Path

    def tidy(self) -> None:
        """Remove what builds that were killed have left."""
        self._must("rm", "--all")

    def has(self, tag: str) -> bool:
        """Tell whether the image is in the store."""
        return self._call("inspect", "--type=image", tag) == 0

    def unpack(self, archive: Path, tag: str, *, architecture: str = "") -> None:
        """Make an image of an archive of files."""
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:  # where there can be a link to it
            Path(folder, archive.name).hardlink_to(archive)
            Path(folder, "Dockerfile").write_text(_UNPACK.format(archive=archive.name))
            self.build(Path(folder), tag, architecture=architecture)

    def build(
        self,
        context: Path,
        tag: str,
        *,
        arguments: Mapping[str, str] = MappingProxyType({}),
        contexts: Mapping[str, Path] = MappingProxyType({}),
        architecture: str = "",
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Build what the folder's Dockerfile says, fetching nothing. The same input gives the same bytes.

        Labels are given here, too: a step that is kept is taken again by the text of its line, whatever the arguments.
        """
        command = ["build", "--isolation=chroot", "--pull=never", "--timestamp=0", f"--tag={tag}"]
        command += ["--layers"] if self.keeps_steps else []
        command += [f"--platform=linux/{architecture}"] if architecture else []
        command += [f"--build-arg={name}={value}" for name, value in arguments.items()]
        command += [f"--label={name}={value}" for name, value in labels.items()]
        command += [f"--build-context={name}={folder}" for name, folder in contexts.items()]
        self._must(*command, str(context))

    def load(self, archive: Path) -> None:
        """Have the image that `save` wrote, under its name."""
        self._must("pull", "--quiet", f"docker-archive:{archive}")

    def run(self, tag: str, *command: str, mounted: Path, at: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in an image as the image says, with a folder of this machine that it may only read."""
        container = f"run-{uuid4().hex}"
        self._must("from", "--pull=never", f"--name={container}", tag)
        try:
            volume = f"--volume={mounted}:{at}:ro"
            return self._process("run", "--isolation=chroot", volume, container, "--", *command, output=subprocess.PIPE)
        finally:
            self._must("rm", container)

    def save(self, tag: str, archive: Path, *, name: str) -> None:
        """Write what `docker load` reads."""
        self._must("push", "--quiet", tag, f"docker-archive:{archive}:{name}")

    def _must(self, *command: str) -> None:
        if self._call(*command):
            raise ClusterError(f"`buildah {command[0]}` failed", log=self.log, cure="mend it, and call this again")

    def _call(self, *command: str) -> int:
        with self.log.open("a") as output:
            return self._process(*command, output=output).returncode

    def _process(self, *command: str, output: IO[str] | int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*_PRIVATELY, "buildah", *self.options, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": self.options[0].partition("=")[2]},
            text=True,
            check=False,
        )


@contextmanager
def opened(store: Path, log: Path) -> Iterator[Buildah]:
    """The store, which is begun anew when it has grown too large."""
    if _size(store) > _STORE_MAX:
        shutil.rmtree(store)
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:  # what it says is mounted now
        driver = "overlay" if _has_overlay(store) else "vfs"  # which copies everything at each step
        options = (f"--root={store}/{driver}", f"--runroot={folder}", f"--storage-driver={driver}")
        made = Buildah(options, driver == "overlay", log)
        made.tidy()
        yield made


def _has_overlay(folder: Path) -> bool:
    """Tell whether it can be had there: an overlay cannot lie on another."""
    with tempfile.TemporaryDirectory(dir=folder) as probe:
        command = [*_PRIVATELY, "/bin/sh", "-c", _OVERLAY, probe]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _size(folder: Path) -> int:
    return sum(Path(where, name).lstat().st_blocks * 512 for where, _, names in os.walk(folder) for name in names)
