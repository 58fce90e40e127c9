"""Calls docker: the one place that does."""

import subprocess
import sys

from testbed.errors import ClusterError


def ask(*arguments: str, timeout_s: float | None = None) -> "subprocess.CompletedProcess[str]":
    """Call docker; what came of it, whatever that is."""
    command = ["docker", *arguments]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except FileNotFoundError as error:
        raise ClusterError("there is no docker command", cure="install it, or use `--provider local`") from error


def must(*arguments: str) -> str:
    """Call docker, which is to succeed; its output."""
    answer = ask(*arguments)
    if answer.returncode:
        raise ClusterError(f"docker {arguments[0]}: {answer.stderr.strip()[-2000:]}", cure="check that Docker runs")
    return answer.stdout


def pull(image: str) -> bool:
    """Pull an image, with Docker's own progress; whether it is there now."""
    done = subprocess.run(["docker", "pull", image], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    return done.returncode == 0


def last(answer: "subprocess.CompletedProcess[str]") -> str:
    """The error that docker or kind names, else the last line it wrote: kind ends with a stack trace."""
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if is_error(line)]
    return next(iter([*errors, *lines[-1:]]), f"exit status {answer.returncode}")


def is_error(line: str) -> bool:
    """Tell whether docker or kind names an error in this line."""
    return line.lower().startswith("error: ")
