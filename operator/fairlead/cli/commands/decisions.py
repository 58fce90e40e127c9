"""`fairlead decisions [pod/NAME]`: the last decisions of all replicas, and what came of them."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.options import add_kubeconfig, seconds
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.replica_decisions import ReplicaDecisions

_NAME: Final = "fairlead decisions"
_WITHIN_S: Final = 15.0
_TRIES: Final = 2


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "decisions",
        help="show the last decisions about pods, and what came of them",
        description="Show what the replicas of the operator answered to schedulers: for each pod the number of nodes "
        "that passed, which rule rejected the others and why, the best nodes, and the node it went to. Each replica "
        "keeps the last attempt of each pod that waits, pods with an effect of rules in shadow, and a sample of the "
        "others; a restart forgets them. With pod/NAME, show the details. Reads through port-forwards to the "
        "operator's pods, for which the Role of the chart whose name ends in -decisions has the permissions. Exit "
        "code: 0, 1 if a replica or a record of one could not be read, 2 if no replica could.",
    )
    parser.add_argument(
        "pod", nargs="?", default="", metavar="pod/NAME", help="show the decisions about this pod, with details"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", default="", help="namespace of the pods (default: all)")
    parser.add_argument("--policy", metavar="NAME", default="", help="only pods to which this policy applies")
    parser.add_argument("--waiting", action="store_true", help="only pods that have no node yet")
    parser.add_argument(
        "--effects", action="store_true", help="only pods on which rules in shadow would have an effect"
    )
    parser.add_argument("--since", metavar="TIME", default="", help="only decisions of this last time, such as 1h")
    parser.add_argument(
        "--operator-namespace",
        metavar="NAME",
        default="",
        help="namespace of the operator (default: where its pods are, or fairlead-system)",
    )
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the decisions of all replicas and print them."""
    import asyncio
    from datetime import UTC, datetime, timedelta

    from fairlead.cli.inputs.replica_decisions import unreadable_records
    from fairlead.cli.reports.decision_text import DecisionFilter, decisions_report, decisions_text

    now = datetime.now(UTC)
    chosen = DecisionFilter(
        namespace=options.namespace,
        pod=_pod_name(options.pod),
        policy=options.policy,
        waiting=options.waiting,
        effects=options.effects,
        since=now - timedelta(seconds=_since_s(options.since)) if options.since else None,
    )
    replicas = asyncio.run(_read(options))
    for one in replicas:
        if one.unread:
            complain(_NAME, f"{one.replica} could not be read: {one.unread}")
        if one.unreadable:
            complain(_NAME, f"{one.replica}: {unreadable_records(one.unreadable)}")
    unread = [one for one in replicas if one.unread]
    if len(unread) == len(replicas):
        return exits.USAGE
    report, out = decisions_report(replicas, chosen), output()
    if options.output == TABLE:
        out.writelines(f"{line}\n" for line in decisions_text(report, now, details=bool(chosen.pod)))
    else:
        out.write(serialize(report, options.output))
    return exits.FAILED if unread or any(one.unreadable for one in replicas) else exits.DONE


def _since_s(text: str) -> float:
    """Return the seconds of a duration such as 1h. Raises CommandError."""
    try:
        return seconds("--since", text)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _pod_name(text: str) -> str:
    """Return the name of a pod that is written as kubectl takes it. Raises CommandError."""
    kind, slash, name = text.rpartition("/")
    if slash and kind not in ("pod", "pods", "po"):
        raise CommandError(f"{text!r} is no pod: write pod/NAME, and its namespace with -n")
    return name


async def _read(options: argparse.Namespace) -> "list[ReplicaDecisions]":
    from fairlead.cli.inputs.replica_decisions import read_decisions
    from fairlead.kube.access.login import log_in
    from fairlead.kube.http.client import Client

    access = log_in(options.kubeconfig, options.context, use_proxy=True)
    async with Client(access, deadline_s=_WITHIN_S, tries=_TRIES) as client:
        return await read_decisions(client, options.operator_namespace, "--operator-namespace names another one")
