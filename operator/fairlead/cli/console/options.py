"""Options that several commands have: the cluster, the pods, the time, whose rights."""

import argparse
from pathlib import Path
from typing import TypeAlias

_SNAPSHOT = "what `kubectl get nodes,pods,namespaces -A -o json` has written, in JSON or YAML"


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """Whose rights."""
    parser.add_argument(
        "--kubeconfig", metavar="FILE", type=Path, help="(KUBECONFIG, or this cluster, or ~/.kube/config)"
    )
    parser.add_argument("--context", metavar="NAME", default="", help="of the kubeconfig (its current one)")


def add_snapshot(parser: argparse.ArgumentParser, *, default: str = "") -> None:
    """Which nodes, and what is on them."""
    shown = f" ({default})" if default else ""
    parser.add_argument(
        "--snapshot",
        nargs="+",
        metavar="FILE|DIR|live",
        required=not default,
        default=[default],
        help=f"{_SNAPSHOT}; live is the cluster of the kubeconfig, which is only read{shown}",
    )


def add_pods(parser: argparse.ArgumentParser) -> None:
    """Which pods."""
    parser.add_argument(
        "--pods",
        nargs="+",
        metavar="FILE|DIR|live",
        required=True,
        help="the pods to ask about; live are those that wait for a scheduler which the policies name",
    )


def add_now(parser: argparse.ArgumentParser) -> None:
    """When."""
    parser.add_argument("--now", metavar="TIME", help="the time that rules see, such as 2027-01-15T22:00:00Z (now)")


# For type checkers only it is generic.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name


def seconds(option: str, text: str, least: float = 0.0) -> float:
    """Such as 800ms. Raises ValueError."""
    from fairlead.cel.functions.time_text import string_to_duration
    from fairlead.cel.values.errors import CelError

    try:
        found = string_to_duration(text) / 1e9
    except CelError:
        found = -1.0
    if found < 0:
        raise ValueError(f"{option} {text!r} is no time such as 800ms, 5s or 1m")
    if found < least:
        raise ValueError(f"{option} {text} is less than {least * 1000:.0f}ms")
    return found
