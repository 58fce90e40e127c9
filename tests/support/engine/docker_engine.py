"""A Docker engine in namespaces of its own, of the distribution's package, which is unpacked and not installed.

What it writes to fixed places ends with its namespaces. Its images stay in its folder, for the next time.
"""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from support.engine import runc
from testbed import build, cache, packages, process
from testbed.errors import ClusterError
from testbed.operator_image import CHECKOUT
from testbed.process import Component
from testbed.sandbox import SYSCTLS, Sandbox, free_network
from testbed.supervisor import Supervisor
from testbed.versions import program

_PACKAGE = "docker.io"
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_STOPS_S = 60
_STARTS_S = 60
_CGROUP_V2 = Path("/sys/fs/cgroup/cgroup.controllers")
# Whatever the engine writes there ends with the namespaces. Names and routes beyond them are refused at once.
_FURNISH = """set -e
for one in etc opt usr; do
  mkdir -p /run/own/$one /run/own/$one-work
  mount -t overlay -o lowerdir=/$one,upperdir=/run/own/$one,workdir=/run/own/$one-work overlay /$one
done
ip route delete default
rm -f /etc/resolv.conf
echo nameserver 127.0.0.1 > /etc/resolv.conf
"""
# The tests' own node runs the kubelet on version 1 of control groups, which the product refuses to begin with.
_DOCKER = """#!/bin/sh
if [ "$*" = "info --format {{{{.CgroupVersion}}}}" ]; then echo 2; exit; fi
exec {docker} "$@"
"""


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """The engine, up or not."""

    folder: Path

    def up(self) -> None:
        """Have it running in fresh namespaces."""
        self.down()
        for name in ("bin", "config"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        settings = {name: path.read_text() for name in SYSCTLS if (path := Path("/proc/sys", name)).exists()}
        cache.write(self._settings, json.dumps(settings))
        self._write_commands()
        sandbox = Sandbox(self.folder)
        sandbox.up(free_network(), build.build([program("pod")])["pod"], "engine")
        subprocess.run([*sandbox.enter(), "/bin/sh", "-c", _FURNISH], check=True)
        self.start()

    def start(self) -> None:
        """Start the engine, in the namespaces that are there."""
        command = [
            f"{packages.unpacked(_PACKAGE)}/usr/sbin/dockerd",
            f"--host=unix://{self._socket}",
            f"--data-root={self.folder}/data",
            f"--cgroup-parent=/{Sandbox(self.folder).cgroup}",
            f"--add-runtime=tests={self.folder}/bin/runc",
            "--default-runtime=tests",
        ]
        engine = Component("dockerd", command, {"PATH": self._path})
        supervisor = Supervisor(self.folder, Sandbox(self.folder).enter)
        supervisor.ensure(engine, self._answers, within_s=_STARTS_S)

    def _answers(self) -> bool:
        return self.call("timeout", "10", "docker", "version").returncode == 0

    def stop(self) -> None:
        """Stop the engine as a service is stopped, which stops its containers."""
        if found := process.find(self.folder, "dockerd"):
            found.terminate()
            found.wait(_STOPS_S)

    def down(self) -> None:
        """Leave nothing but its images."""
        with contextlib.suppress(psutil.TimeoutExpired):  # then it ends with its namespaces
            self.stop()
        Sandbox(self.folder).down()
        if self._settings.exists():
            for name, value in json.loads(self._settings.read_text()).items():
                if Path("/proc/sys", name).read_text() != value:
                    Path("/proc/sys", name).write_text(value)
            self._settings.unlink()

    def call(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the engine's network, as in a shell of a machine that has this engine."""
        return subprocess.run(
            [*Sandbox(self.folder).enter_network(), *command],
            env={
                "PATH": self._path,
                "HOME": str(self.folder),
                "DOCKER_HOST": f"unix://{self._socket}",
                "DOCKER_CONFIG": f"{self.folder}/config",
                "FAIRLEAD_CACHE": str(cache.root()),
            },
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def must(self, *command: str) -> str:
        """Run a command that is to succeed; its output."""
        done = self.call(*command)
        if done.returncode:
            raise ClusterError(f"`{' '.join(command)}` failed: {done.stdout}")
        return done.stdout

    def id_of(self, image: str) -> str:
        """The id of an image; empty where there is none."""
        done = self.call("docker", "image", "inspect", "--format", "{{.Id}}", image)
        return done.stdout.strip() if done.returncode == 0 else ""

    def name(self, names: Mapping[str, str]) -> None:
        """Give images the names of published ones, with digests, which only a registry gives."""
        wanted = {name: self.id_of(image) for name, image in names.items()}
        if all(self.id_of(name) == own for name, own in wanted.items()):
            return
        self.stop()
        (file,) = (self.folder / "data" / "image").glob("*/repositories.json")
        document = json.loads(file.read_text())
        for name, own in wanted.items():
            for one in spellings(name):
                document["Repositories"].setdefault(one.partition("@")[0].partition(":")[0], {})[one] = own
        cache.write(file, json.dumps(document), mode=0o600)
        self.start()

    def forget_older(self, *tags: str) -> None:
        """Remove the images under other tags of these repositories."""
        kept = {self.id_of(tag) for tag in tags}
        for tag in tags:
            listed = self.must("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", tag.rpartition(":")[0])
            if older := [one for one in listed.split() if self.id_of(one) not in kept]:
                self.must("docker", "image", "rm", *older)
                self.must("docker", "image", "prune", "--force")

    def platform(self) -> str:
        """The platform of its containers, such as `linux/amd64`."""
        return self.must("docker", "version", "--format", "{{.Server.Os}}/{{.Server.Arch}}").strip()

    @property
    def _socket(self) -> Path:
        return self.folder / "docker.sock"

    @property
    def _settings(self) -> Path:
        """Settings of the kernel before a kubelet changed them, to be restored also after a run that was killed."""
        return self.folder / "settings.json"

    @property
    def _path(self) -> str:
        unpacked = packages.unpacked(_PACKAGE)
        return f"{self.folder}/bin:{unpacked}/usr/sbin:{unpacked}/usr/bin:{_PATH}"

    def _write_commands(self) -> None:
        interpreter, script = f"{sys.executable} -I -S", runc.__file__
        real = shutil.which("runc", path=_PATH)  # which is not the one that is written here
        own = f'#!/bin/sh\nexec {interpreter} {script} {real} "$@"\n'
        cache.write(self.folder / "bin" / "runc", own, mode=0o755)
        if not _CGROUP_V2.exists():
            docker = packages.unpacked(_PACKAGE) / "usr" / "bin" / "docker"
            cache.write(self.folder / "bin" / "docker", _DOCKER.format(docker=docker), mode=0o755)


def spellings(name: str) -> list[str]:
    """The names that Docker finds an image by, of one with a tag, a digest or both."""
    short = name.removeprefix("docker.io/").removeprefix("library/")
    tagged, _, digest = short.partition("@")
    repository, _, tag = tagged.partition(":")
    return [*([tagged] if tag else []), *([f"{repository}@{digest}"] if digest else [])]
