"""`fairlead uninstall`: deletes what the operator created; run by the chart's hook, or by hand without Helm."""

import argparse
import sys
from typing import TYPE_CHECKING

from fairlead.cli.console.exits import DONE, FAILED, CommandError
from fairlead.cli.console.options import add_kubeconfig
from fairlead.cli.console.output import complain, errors, pluralize
from fairlead.pki.identities import REPLICAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.cli.console.options import Commands
    from fairlead.kube.http.client import Client
    from fairlead.process.uninstaller import Installation, Uninstaller

_COMMAND = "fairlead uninstall"
_YES = ("y", "yes")


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "uninstall",
        help="delete everything that the operator has created",
        description="Delete the schedulers that the operator manages, then the operator's Deployment, then everything "
        "else that it has created. Policies and their CustomResourceDefinition stay, and their status then says that "
        "nothing enforces them. On a terminal it asks first. Safe to run again. Exit code: 0 if everything is "
        "deleted, 1 if not, or if nothing is installed in the namespace, 2 if the cluster cannot be reached.",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        help="namespace of the operator (default: that of the pod, or of the kubeconfig)",
    )
    parser.add_argument(
        "--operator",
        metavar="SELECTOR",
        default=REPLICAS,
        help="labels of the operator's Deployment and its pods (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--ignore-not-found", action="store_true", help="exit with 0 if nothing is installed in the namespace"
    )
    parser.add_argument("--within", metavar="TIME", default="4m", help="give up after this time (default: %(default)s)")
    add_kubeconfig(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Delete everything, or say what there is."""
    import asyncio

    from fairlead.cli.console.options import seconds
    from fairlead.kube.errors import ClusterError

    try:
        lasts_s = seconds("--within", options.within, least=1)
    except ValueError as error:
        raise CommandError(str(error)) from None
    found, namespace = asyncio.run(_find(options, lasts_s))
    if not found.is_there:
        complain(_COMMAND, _missing(namespace, found.others))
        return DONE if options.ignore_not_found else FAILED
    if options.dry_run:
        return DONE
    if not options.yes and sys.stdin is not None and sys.stdin.isatty() and not _confirmed(namespace, found):
        complain(_COMMAND, "nothing was deleted")
        return FAILED
    try:
        asyncio.run(_uninstall(options, lasts_s))
    except ClusterError as error:
        raise CommandError(str(error), FAILED) from None
    return DONE


async def _find(options: argparse.Namespace, lasts_s: float) -> "tuple[Installation, str]":
    """Return what is installed, and where that was looked for; print it if that is all that is to be done."""
    from fairlead.cli.inputs.cluster_access import check_answer
    from fairlead.kube.access.login import log_in
    from fairlead.kube.http.client import Client

    async with Client(log_in(options.kubeconfig, options.context, use_proxy=True), deadline_s=lasts_s) as client:
        await check_answer(client)  # before what deletes is loaded
        work = _uninstaller(options, client, lasts_s)
        found = await work.find()
        if options.dry_run and found.is_there:
            for line in _would_delete(found):
                _say(line)
            await work.report_pods(found)
        return found, work.namespace


async def _uninstall(options: argparse.Namespace, lasts_s: float) -> None:
    """Delete everything. Raises CommandError, which says why it is not finished."""
    import asyncio

    from fairlead.kube.access.login import log_in
    from fairlead.kube.http.client import Client

    async with Client(log_in(options.kubeconfig, options.context, use_proxy=True)) as client:
        work = _uninstaller(options, client, lasts_s)
        try:
            async with asyncio.timeout(lasts_s):
                await work.run()
        except TimeoutError:
            why = work.doing or f"{client.login.server} does not answer or is slow"
            message = f"not finished within {options.within}: {why}; run it again"
            raise CommandError(message, FAILED) from None


def _uninstaller(options: argparse.Namespace, client: "Client", lasts_s: float) -> "Uninstaller":
    from fairlead.control.reconcile.object_client import ObjectClient
    from fairlead.process.uninstaller import Uninstaller

    return Uninstaller(
        objects=ObjectClient(client),
        namespace=options.namespace or client.login.namespace,
        operator=options.operator,
        lasts_s=lasts_s,
        report=_say,
    )


def _missing(namespace: str, others: "Sequence[str]") -> str:
    """Return the error about a namespace without an operator."""
    elsewhere = f"it is in {', '.join(others)}: add --namespace {others[0]}" if others else "nor was it found elsewhere"
    return f"Fairlead is not installed in the namespace {namespace}; {elsewhere}"


def _would_delete(installation: "Installation") -> "Iterator[str]":
    said = list[str]()
    for one in (
        *installation.schedulers,
        *(one for one in installation.operator if one["kind"] != "Pod"),
        *installation.objects,
    ):
        metadata = one["metadata"]
        where = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
        said.append(f"would delete {one['kind']} {metadata['name']}{where}")
    yield from dict.fromkeys(said)  # what a scheduler shares with others is found twice
    yield f"{pluralize(len(installation.policies), 'policy', 'policies')} and the CustomResourceDefinition would remain"


def _confirmed(namespace: str, installation: "Installation") -> bool:
    """Ask on the terminal whether to go on."""
    from fairlead.render.object_names import SCHEDULER_LABEL

    names = [one["metadata"]["labels"][SCHEDULER_LABEL] for one in installation.schedulers]
    schedulers = f" and {pluralize(len(names), 'scheduler')} ({', '.join(sorted(names))})" if names else ""
    waits = f": pods that name {'it' if len(names) == 1 else 'them'} wait" if names else ""
    question = f"This deletes the operator in {namespace}{schedulers}{waits}. Continue? [y/N] "
    print(question, end="", file=errors(), flush=True)
    return sys.stdin.readline().strip().lower() in _YES


def _say(text: str) -> None:
    print(text, flush=True)
