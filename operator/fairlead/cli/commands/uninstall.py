"""`fairlead uninstall`: deletes what the operator created; run by the chart's hook, or by hand without Helm."""

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.console.exits import FAILED, USAGE
from fairlead.cli.console.options import add_kubeconfig
from fairlead.cli.console.output import complain
from fairlead.pki.identities import REPLICAS

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_COMMAND = "fairlead uninstall"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "uninstall",
        help="delete everything that the operator has created",
        description="Delete the schedulers that the operator manages, then the operator's Deployment, then everything "
        "else that it has created. Policies and their CustomResourceDefinition stay. Safe to run again.",
    )
    parser.add_argument(
        "--namespace", metavar="NAME", help="namespace of the operator (default: that of the pod, or of the kubeconfig)"
    )
    parser.add_argument(
        "--operator",
        metavar="SELECTOR",
        default=REPLICAS,
        help="labels of the operator's Deployment and its pods (default: %(default)s)",
    )
    parser.add_argument("--within", metavar="TIME", default="4m", help="give up after this time (default: %(default)s)")
    add_kubeconfig(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Delete everything."""
    import asyncio

    from fairlead.cli.console.options import seconds
    from fairlead.control.reconcile.object_client import ObjectClient
    from fairlead.kube.access.access import find_access
    from fairlead.kube.errors import AccessError, ClusterError
    from fairlead.kube.http.client import Client
    from fairlead.process.uninstaller import Uninstaller

    def say(text: str) -> None:
        print(text, flush=True)

    async def uninstall(lasts_s: float) -> str:
        async with Client(find_access(given.kubeconfig, given.context)) as client:
            namespace = given.namespace or client.access.namespace
            work = Uninstaller(
                objects=ObjectClient(client), namespace=namespace, operator=given.operator, lasts_s=lasts_s, report=say
            )
            try:
                async with asyncio.timeout(lasts_s):
                    await work.run()
            except TimeoutError:
                why = work.doing or f"{client.access.server} does not answer or is slow"
                return f"not finished within {given.within}: {why}; run it again"
        return ""

    try:
        lasts_s = seconds("--within", given.within, least=1)
    except ValueError as error:
        complain(_COMMAND, str(error))
        return USAGE
    try:
        fault = asyncio.run(uninstall(lasts_s))
    except AccessError as error:
        complain(_COMMAND, str(error))
        return USAGE
    except ClusterError as error:
        fault = str(error)
    if fault:
        complain(_COMMAND, fault)
        return FAILED
    return 0
