"""`fairlead data POLICY`: how old the measured values of a policy are, and which nodes lack them, on each replica."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_kubeconfig
from fairlead.cli.console.output import TABLE, add_output, complain, dumped, output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead data"
_WITHIN_S: Final = 15.0
_TRIES: Final = 2


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "data",
        help="show how old the measured values of a policy are, and which nodes lack them",
        description="Show for each measured entry of a policy's data its source, how old its values are, which nodes "
        "have none and why, and the last error, on each replica of the operator. It comes from the policy's status, "
        "which the operator writes at once when DataReady changes, and ages alone every 5 minutes. "
        "Values from annotations and labels of nodes are not in it; explain shows them. "
        "Exit code: 0 if the values are there, 1 if not, 2 if the policy cannot be read.",
    )
    parser.add_argument("policy", metavar="POLICY", help="name of the policy")
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Read the policy and print what is measured for it."""
    import asyncio
    from datetime import UTC, datetime

    from fairlead.cli.console.exits import REACH
    from fairlead.cli.data.data_text import data_lines, data_of
    from fairlead.kube.errors import ClusterError, NotFoundError, UnreachableError

    try:
        policy = asyncio.run(_read(given))
    except NotFoundError:
        complain(_NAME, f"there is no policy {given.policy!r}; `kubectl get sep` lists them")
        return exits.USAGE
    except ClusterError as error:
        complain(_NAME, f"{error}; {REACH}" if isinstance(error, UnreachableError) else str(error))
        return exits.USAGE
    found, out = data_of(policy), output()
    if given.output == TABLE:
        out.writelines(f"{line}\n" for line in data_lines(found, datetime.now(UTC)))
    else:
        out.write(dumped(found, given.output))
    return exits.FAILED if found["ready"] is False else exits.DONE


async def _read(given: argparse.Namespace) -> "Mapping[str, Any]":
    from fairlead.kube.access.access import find_access
    from fairlead.kube.http.client import Client
    from fairlead.kube.resources import POLICIES, decode_object

    access = find_access(given.kubeconfig, given.context)
    async with Client(access, deadline_s=_WITHIN_S, tries=_TRIES) as client:
        return await client.get(POLICIES.named("", given.policy), decode_object)
