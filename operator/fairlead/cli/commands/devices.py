"""`fairlead devices [NODE]`: what the devices of nodes have, what is granted of them, and to whom."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_cluster, add_policies
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead devices"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "devices",
        help="show which shares of devices are granted, and to which pods",
        description="Show the capacity of the devices that policies share, and how much of it is granted, per node "
        "and in total. With NODE, also show each device and its pods. Reports pods without a grant, annotations that "
        "differ from the ledger, and entries that cannot be read. Reads with your own permissions. "
        "Exit code: 0, or 2 if an input cannot be read.",
        epilog="Example without a cluster: `kubectl get nodes,pods,configmaps -A -o json > now.json`, then "
        "`fairlead devices --policies gpu.yaml --snapshot now.json`.",
    )
    parser.add_argument("node", metavar="NODE", nargs="?", default="", help="show this node's devices and their pods")
    add_policies(parser)
    add_cluster(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the devices."""
    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access

    option = PolicyOption("--policies", options.policies)
    access = cluster_access(options, [option])
    from fairlead.cli.inputs.simulated_cluster import no_pods, read_cluster
    from fairlead.cli.inputs.simulation_inputs import policies_with_devices, unknown_node
    from fairlead.cli.reports.device_text import cluster_lines, node_lines
    from fairlead.mirror.device_report import node_report, sum_of

    cluster = read_cluster(access, [option], lambda _: no_pods, policies_with_devices)
    simulation = cluster.simulation()
    if options.node and options.node not in simulation.names:
        raise unknown_node(options.node, simulation.names)
    nodes = [
        found
        for name in ([options.node] if options.node else simulation.names)
        if (view := simulation.mirror.nodes.view_of(name)) is not None
        if (
            found := node_report(
                view, simulation.mirror.placed_on(name), simulation.ledgers.get(name), simulation.shares
            )
        )
        is not None
    ]
    found = {"nodes": nodes, "totals": sum_of(one for node in nodes for one in node["totals"])}
    for note in cluster.notes_on_ledgers():
        complain(_NAME, note)
    out = output()
    if options.output != TABLE:
        out.write(serialize(found, options.output))
        return exits.DONE
    lines = cluster_lines(found, shares=bool(simulation.shares)) if not options.node else node_lines(found)
    out.writelines(f"{line}\n" for line in lines)
    return exits.DONE
