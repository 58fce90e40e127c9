"""Long-running programs: started so that they outlive us, found again by a mark in their environment.

There are no process id files. A process is ours when its environment carries the mark of its cluster, which holds
after any crash and can never name a stranger's process.
"""

import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from testbed.errors import ClusterError

_CLUSTER, _COMPONENT, _PROGRAM = (f"FAIRLEAD_TESTBED_{part}" for part in ("CLUSTER", "COMPONENT", "PROGRAM"))
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_GONE_AFTER_S = 10.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Component:
    """A program of a cluster and how it is started."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def log_of(cluster: Path, name: str) -> Path:
    """Log file of a component."""
    return cluster / "logs" / f"{name}.log"


def start(cluster: Path, component: Component, *, enter: Sequence[str] = ()) -> None:
    """Start a component in the background; `enter` is the command that enters its namespaces.

    Its environment is its own: what the user's shell exports (a proxy, a KUBECONFIG) must not reach it.
    """
    log = log_of(cluster, component.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    # the shell leaves at once, so that the component is nobody's child and never a zombie of ours
    script = f"{shlex.join(component.command)} </dev/null >>{shlex.quote(str(log))} 2>&1 &"
    environment = {
        "PATH": _PATH,
        "HOME": str(cluster),
        _CLUSTER: str(cluster),
        _COMPONENT: component.name,
        _PROGRAM: Path(component.command[0]).name,
    }
    try:
        subprocess.run(
            [*enter, "/bin/sh", "-c", script],
            env=environment | dict(component.environment),
            check=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=cluster,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClusterError(f"{component.name} could not be started: {error}", log=log) from error


def find(cluster: Path, name: str) -> psutil.Process | None:
    """The running process of a component."""
    return running(cluster).get(name)


def running(cluster: Path) -> dict[str, psutil.Process]:
    """The components that run, by name. What a component starts inherits its mark, and is told apart by its program.

    The eldest is the component: a child that it has forked is called like it until it becomes what it is to be.
    """
    found: dict[str, tuple[float, psutil.Process]] = {}
    for process in all_of(cluster):
        try:
            environment, command, born = process.environ(), process.cmdline(), process.create_time()
        except psutil.Error:
            continue
        name = environment.get(_COMPONENT, "")
        if (
            command
            and Path(command[0]).name == environment.get(_PROGRAM)
            and (name not in found or born < found[name][0])
        ):
            found[name] = born, process
    return {name: process for name, (_, process) in found.items()}


def state(process: psutil.Process) -> str:
    """`running`; or `stopped`, by somebody's signal, which no wait would end."""
    try:
        return "stopped" if process.status() == psutil.STATUS_STOPPED else "running"
    except psutil.NoSuchProcess:
        return "dead"


def is_gone(cluster: Path, name: str) -> bool:
    """Tell whether nothing is left of a component, also not a process that is just becoming it."""
    return not any(_component(process) == name for process in all_of(cluster))


def all_of(cluster: Path) -> list[psutil.Process]:
    """Every process that carries the cluster's mark."""
    ours = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_CLUSTER) == str(cluster) and process.status() != psutil.STATUS_ZOMBIE:
                ours.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or somebody else's
    return [process for process in ours if process.pid != os.getpid()]


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill and wait until they are gone. Nothing here holds anything that an orderly stop would save."""
    victims = [*processes]
    for victim in victims:
        try:
            victim.kill()  # psutil compares the time of birth first: an id that was given anew is not touched
        except psutil.NoSuchProcess:
            continue
    end = time.monotonic() + _GONE_AFTER_S
    while alive := [victim for victim in victims if _is_alive(victim)]:
        if time.monotonic() > end:
            raise ClusterError(
                f"these processes do not die: {alive}", cure="look at what they wait for in /proc/PID/stack"
            )
        time.sleep(_POLL_S)


def kill_all(cluster: Path) -> None:
    """Kill every process of a cluster, also those that are just being started."""
    end = time.monotonic() + _GONE_AFTER_S
    while victims := all_of(cluster) or _all_a_moment_later(cluster):
        kill(victims)
        if time.monotonic() > end:
            raise ClusterError(f"processes of {cluster.name} keep appearing: {victims}", cure="stop who starts them")


def _all_a_moment_later(cluster: Path) -> list[psutil.Process]:
    """List again, after a moment: a process that is just becoming another program has no environment for that long."""
    time.sleep(_POLL_S)
    return all_of(cluster)


def _component(process: psutil.Process) -> str:
    try:
        return str(process.environ().get(_COMPONENT, ""))
    except psutil.Error:
        return ""


def _is_alive(process: psutil.Process) -> bool:
    """Tell whether it still holds anything. A zombie does not; process 1 may reap it late or, in a container, never."""
    try:
        if not process.is_running():
            return False
        # what is called a zombie while it has threads is one whose first thread alone has ended
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.NoSuchProcess:
        return False
