"""Options that several commands share."""

import argparse
import shlex
from pathlib import Path
from typing import Final, TypeAlias

FILES: Final = "FILE|DIR|-"
_SNAPSHOT = "output of `kubectl get nodes,pods,namespaces -A -o json`, in JSON or YAML"


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """Add the options that select a cluster."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="kubeconfig (default: KUBECONFIG, the cluster that this runs in, or ~/.kube/config)",
    )
    parser.add_argument(
        "--context", metavar="NAME", default="", help="context of the kubeconfig (default: the current one)"
    )


def add_files(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the files of a command, as arguments or, as kubectl takes them, as an option; `main` demands at least one."""
    parser.add_argument("files", nargs="*", action="extend", default=[], metavar=FILES, help=what)
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        nargs=1,
        action="extend",
        metavar=FILES,
        help="the same, as a flag like that of kubectl; may be repeated",
    )


def add_drain(parser: argparse.ArgumentParser) -> None:
    """Add the option for how long a server still answers after SIGTERM."""
    parser.add_argument(
        "--drain", metavar="TIME", default="5s", help="keep serving this long after SIGTERM (default: %(default)s)"
    )


def add_decisions(parser: argparse.ArgumentParser) -> None:
    """Add the options for decisions that are kept and logged."""
    parser.add_argument(
        "--decisions",
        metavar="127.0.0.1:PORT",
        default="",
        help="keep the last decisions, and serve them at /decisions on this port of the loopback address "
        "(default: keep none)",
    )
    parser.add_argument(
        "--log-decisions",
        choices=["None", "Waiting", "All"],
        default="None",
        help="log decisions that leave a pod without a node, or all, without nodes and points, at most 50 a second "
        "(default: %(default)s)",
    )


def add_log_format(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option for the form of log lines."""
    parser.add_argument(
        "--log-format", choices=["console", "json"], default=default, help="form of log lines (default: %(default)s)"
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is simulated, and when: they are the same for all commands that simulate."""
    parser.add_argument(
        "--snapshot",
        nargs="+",
        action="extend",
        metavar="FILE|DIR|live",
        default=[],
        help=f"{_SNAPSHOT}; live reads the cluster of the kubeconfig (default: live)",
    )
    parser.set_defaults(learned=[], as_enforced=False)
    add_measured(parser)
    parser.add_argument(
        "--now",
        metavar="TIME",
        help="time that rules see, such as 2027-01-15T22:00:00Z (default: now; for files the newest time in them)",
    )
    add_kubeconfig(parser)


def add_learned(parser: argparse.ArgumentParser) -> None:
    """Add the option that gives what rules have learned."""
    parser.add_argument(
        "--learned",
        action="append",
        metavar="FILE",
        default=[],
        help="what rules have learned, instead of what the cluster or the snapshot says of them: the output of "
        "`fairlead learned POLICY -o yaml`, or ConfigMaps; may be repeated",
    )


def add_as_enforced(parser: argparse.ArgumentParser) -> None:
    """Add the option that takes what is in shadow as enforced."""
    parser.add_argument(
        "--as-enforced",
        action="store_true",
        help="take what is in shadow as enforced, instead of saying beside the result what it would change",
    )


def repeated(options: argparse.Namespace) -> str:
    """Return the options of `add_policies` and `add_cluster` as they were given, for a command that is suggested."""
    words = ["--policies", *options.policies] if options.policies else []
    if options.snapshot not in ([], ["live"]):
        words += ["--snapshot", *options.snapshot]
    single = {
        "--prometheus-token": options.prometheus_token,
        "--now": options.now,
        "--kubeconfig": options.kubeconfig,
        "--context": options.context,
    }
    several = {"--data": options.data, "--learned": options.learned, "--prometheus": options.prometheus}
    pairs = [*((option, one) for option, given in several.items() for one in given), *single.items()]
    for option, value in pairs:
        if value:
            words += [option, str(value)]
    words += ["--as-enforced"] * options.as_enforced
    return shlex.join(words)


def add_policies(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the option that names the policies."""
    default = "" if required else " (default: live)"
    parser.add_argument(
        "--policies",
        nargs="+",
        action="extend",
        metavar="FILE|DIR|live",
        default=[],
        required=required,
        help=f"policies to use instead of those of the cluster; live: those of the cluster{default}",
    )


def add_pods(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the pods."""
    parser.add_argument(
        "--pods",
        nargs="+",
        action="extend",
        metavar="FILE|DIR|live",
        default=[],
        help="pods to simulate, and workloads, whose templates count as their replicas; live: those that wait for a "
        "scheduler named by the policies (default: all pods of the snapshot with such a scheduler)",
    )


def add_measured(parser: argparse.ArgumentParser) -> None:
    """Add the options that give measured values."""
    _add_data(parser)
    _add_prometheus(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option that gives measured values."""
    parser.add_argument(
        "--data",
        action="append",
        metavar="FILE",
        default=[],
        help='values of nodes that policies read from elsewhere: {"POLICY": {"ENTRY": {"values": {"NODE": 0.4}}}}; '
        "may be repeated",
    )


def _add_prometheus(parser: argparse.ArgumentParser) -> None:
    """Add the options that name Prometheus servers to ask."""
    parser.add_argument(
        "--prometheus",
        action="append",
        metavar="NAME=URL",
        default=[],
        help="ask this server for the values of entries that name it as server; may be repeated",
    )
    parser.add_argument("--prometheus-token", metavar="FILE", help="file with your bearer token for these servers")


# It is generic for type checkers only.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name


def seconds(option: str, text: str, least: float = 0.0) -> float:
    """Return the seconds of a duration such as 800ms. Raises ValueError."""
    from fairlead.cel.functions.time_text import string_to_duration
    from fairlead.cel.values.errors import CelError

    try:
        found = string_to_duration(text) / 1e9
    except CelError:
        found = -1.0
    if found < 0:
        raise ValueError(f"{option} {text!r} is not a duration such as 800ms, 5s or 1m")
    if found < least:
        raise ValueError(f"{option} {text} is less than {least * 1000:.0f}ms")
    return found
