"""Abilities of this machine, which decide the provider."""

import functools
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from testbed import build, docker, images
from testbed.errors import ClusterError
from testbed.versions import program

_TIMEOUT_S = 60


@functools.cache
def docker_obstacle() -> str:
    """Reason why Docker cannot start a node of kind, which is a privileged container; empty when it can."""
    if not shutil.which("docker"):
        return "there is no docker command"
    try:
        platform = engine_platform()
        if _ask("info", "--format", "{{.CgroupVersion}}").stdout.strip() == "1":
            return "Docker has cgroup v1 here, and the kubelet of Kubernetes 1.35 and newer needs cgroup v2"
        started = _started(platform)
    except subprocess.TimeoutExpired:
        return "Docker does not answer within a minute"
    except ClusterError as error:
        return error.what
    if started.returncode:
        return f"Docker cannot start a privileged container: {docker.last(started)}"
    return ""


@functools.cache
def engine_platform() -> str:
    """The platform of Docker's engine, such as `linux/arm64`: on a Mac it is not that of the machine."""
    answer = _ask("version", "--format", "{{.Server.Os}}/{{.Server.Arch}}")
    if answer.returncode:
        raise ClusterError(f"no Docker engine answers: {docker.last(answer)}", cure="start Docker")
    return answer.stdout.strip()


def _started(platform: str) -> "subprocess.CompletedProcess[str]":
    """Start a privileged container that ends at once, in an image of this process's own."""
    probe = f"fairlead.dev/testbed/probe:{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "probe.tar")
        built = build.build([replace(program("pod"), platform=platform)])["pod"]
        file.write_bytes(images.archive(probe, built))
        _ask("load", "--quiet", "--input", str(file))
    try:
        return _ask("run", "--rm", "--privileged", "--network=none", f"--platform={platform}", probe, "exit", "0")
    finally:
        _ask("image", "rm", probe)


def _ask(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return docker.ask(*arguments, timeout_s=_TIMEOUT_S)
