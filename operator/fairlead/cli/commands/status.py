"""`fairlead status`: the state of policies, schedulers and the operator on one screen, problems first."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_kubeconfig
from fairlead.cli.console.output import TABLE, add_output, output, serialize, wants_colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.operator_survey import Survey
    from fairlead.cli.installation.scheduler_names import StrayPods

_WITHIN_S: Final = 15.0
_TRIES: Final = 2


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "status",
        help="show the state of policies, schedulers and the operator",
        description="Show the state of policies, schedulers and the operator's replicas in the cluster of the "
        "kubeconfig, problems first. Reads with your own permissions and names what you may not read. Exit code: 0 if "
        "everything is ready, 1 if something is not or the operator's pods were not read, 2 if the cluster cannot be "
        "read.",
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", default="", help="namespace of the operator (default: where its pods are)"
    )
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the cluster and print its state."""
    import asyncio

    from fairlead.cli.reports.status_summary import overview, status_as_data
    from fairlead.cli.reports.status_text import status_text
    from fairlead.kube.errors import NotFoundError

    try:
        found = overview(*asyncio.run(_look(options)))
    except NotFoundError:
        raise exits.CommandError(exits.NO_POLICIES) from None
    out = output()
    if options.output == TABLE:
        lines = status_text(found, colour=wants_colour(out), whole=not out.isatty())
        out.writelines(f"{line}\n" for line in lines)
    else:
        out.write(serialize(status_as_data(found), options.output))
    return exits.DONE if found.ready else exits.FAILED


async def _look(options: argparse.Namespace) -> "tuple[Survey, Sequence[StrayPods]]":
    from fairlead.cli.inputs.operator_survey import survey
    from fairlead.cli.installation.scheduler_names import add_strays
    from fairlead.kube.access.login import log_in
    from fairlead.kube.http.client import Client

    access = log_in(options.kubeconfig, options.context, use_proxy=True)
    async with Client(access, deadline_s=_WITHIN_S, tries=_TRIES) as client:
        return await add_strays(client, await survey(client, options.namespace))
