"""`fairlead data [POLICY]`: measured values of policies, how old they are, and which nodes lack them."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_kubeconfig
from fairlead.cli.console.output import TABLE, add_output, output, serialize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.console.options import Commands

_WITHIN_S: Final = 15.0
_TRIES: Final = 2


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "data",
        help="show the measured values of policies, how old they are, and which nodes lack them",
        description="List the policies that measure values. With POLICY, show for each measured entry its source, "
        "how old its values are, which nodes have none and why, and the last error, on each replica of the operator. "
        "This comes from the policy's status, which the operator updates at once when DataReady changes, and otherwise "
        "every 5 minutes. With the operator's permissions, it also shows the value of each node, as one replica has it "
        "now. It does not show values from annotations and labels of nodes; explain does. "
        "Exit code: 0 if the values are there, 1 if not, 2 if a policy cannot be read.",
    )
    parser.add_argument(
        "policy", nargs="?", default="", metavar="POLICY", help="name of the policy (default: list all)"
    )
    parser.add_argument("entry", nargs="?", default="", metavar="ENTRY", help="show only this entry")
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the policy and print what is measured for it, or list all."""
    import asyncio
    from datetime import UTC, datetime

    from fairlead.cli.reports.data_text import data_lines, list_lines

    now, out = datetime.now(UTC), output()
    if not options.policy:
        listed = asyncio.run(_list(options))
        if options.output == TABLE:
            out.writelines(f"{line}\n" for line in list_lines(listed, now))
        else:
            out.write(serialize({"policies": listed}, options.output))
        return exits.FAILED if any(one["ready"] is False for one in listed) else exits.DONE
    found = asyncio.run(_read(options))
    if found["entries"]:
        found |= asyncio.run(_values(options, [entry["name"] for entry in found["entries"]]))
    if options.output == TABLE:
        out.writelines(f"{line}\n" for line in data_lines(found, now))
    else:
        out.write(serialize(found, options.output))
    return exits.FAILED if found["ready"] is False else exits.DONE


async def _list(options: argparse.Namespace) -> "list[dict[str, Any]]":
    from fairlead.cli.inputs.operator_survey import select_measured
    from fairlead.cli.reports.data_text import data_of
    from fairlead.control.reconcile.object_client import ObjectClient
    from fairlead.kube.access.login import log_in
    from fairlead.kube.errors import NotFoundError
    from fairlead.kube.http.client import Client
    from fairlead.kube.resources import POLICIES

    access = log_in(options.kubeconfig, options.context, use_proxy=True)
    async with Client(access, deadline_s=_WITHIN_S, tries=_TRIES) as client:
        try:
            policies = await ObjectClient(client).all(POLICIES)
        except NotFoundError:
            raise exits.CommandError(exits.NO_POLICIES) from None
    return [
        data_of(one) for one in sorted(policies, key=lambda one: str(one["metadata"]["name"])) if select_measured(one)
    ]


async def _read(options: argparse.Namespace) -> "dict[str, Any]":
    from fairlead.api.closest_name import closest_name
    from fairlead.cli.inputs.operator_survey import select_measured
    from fairlead.cli.reports.data_text import data_of
    from fairlead.kube.access.login import log_in
    from fairlead.kube.errors import NotFoundError
    from fairlead.kube.http.client import Client
    from fairlead.kube.resources import POLICIES, decode_object

    access = log_in(options.kubeconfig, options.context, use_proxy=True)
    async with Client(access, deadline_s=_WITHIN_S, tries=_TRIES) as client:
        try:
            policy = await client.get(POLICIES.named("", options.policy), decode_object)
        except NotFoundError:
            raise exits.CommandError(f"there is no policy {options.policy!r}; `kubectl get sep` lists them") from None
    found = data_of(policy)
    if options.entry:
        names = [str(entry["name"]) for entry in select_measured(policy)]
        if options.entry not in names:
            near = closest_name(options.entry, names)
            cure = f"did you mean {near}?" if near else f"it measures {', '.join(names) or 'nothing'}"
            raise exits.CommandError(f"{options.policy} measures no entry {options.entry!r}: {cure}")
        found["entries"] = [entry for entry in found["entries"] if entry["name"] == options.entry]
    return found


async def _values(options: argparse.Namespace, entries: "Sequence[str]") -> "dict[str, Any]":
    """Return the values of entries by node as a replica has them, or why no replica can be asked."""
    from fairlead.cli.inputs.replica_pages import SilentError
    from fairlead.cli.inputs.replica_values import ask_replica, page_of
    from fairlead.kube.access.login import log_in
    from fairlead.kube.errors import ClusterError
    from fairlead.kube.http.client import Client

    paths = {entry: page_of(options.policy, entry) for entry in entries}
    try:
        async with Client(log_in(options.kubeconfig, options.context, use_proxy=True), deadline_s=_WITHIN_S) as client:
            replica, pages = await ask_replica(client, [*paths.values()])
    except (SilentError, ClusterError) as error:
        return {"values": None, "valuesFrom": None, "valuesUnknown": str(error)}
    values = {entry: pages.get(path, {}).get("nodes", {}) for entry, path in paths.items()}
    return {"values": values, "valuesFrom": replica, "valuesUnknown": None}
