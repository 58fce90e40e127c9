"""`fairlead affinity POLICY...`: the node affinity that policies imply, for autoscalers, which call no extender."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import FILES
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead affinity"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "affinity",
        help="show the node affinity that policies imply, which autoscalers understand",
        description="Show the node affinity that the filters of policies imply, without those in shadow. It selects "
        "every node that passes, and as few others as labels can say; what it leaves out is shown. Rules may depend on "
        "labels and annotations of the pod, on its namespace and the labels of that, and on extended resources. With "
        "-f, also show what each pod would be created with, to be written into its file. Labels of namespaces are "
        "those of the Namespaces in these files. No cluster is asked. Exit code: 0, 1 if a policy has errors, 2 if an "
        "input cannot be read.",
        epilog="Example: `fairlead affinity pool.yaml -f train.yaml`.",
    )
    parser.add_argument("policies", nargs="+", metavar=FILES, help="policies in YAML or JSON; - is standard input")
    parser.add_argument(
        "-f",
        "--filename",
        dest="pods",
        nargs=1,
        action="extend",
        default=[],
        metavar=FILES,
        help="pods, workloads, whose template counts as a pod, and namespaces; may be repeated",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the affinity."""
    # Imported here: the CEL engine takes longer to load than everything else.
    from fairlead.cli.inputs.simulation_inputs import policies_of, snapshot_of, templates_of
    from fairlead.cli.reports.affinity_report import affinity_data, affinity_report
    from fairlead.cli.reports.affinity_text import affinity_text

    policies = policies_of(options.policies)
    snapshot = snapshot_of(options.pods) if options.pods else None
    pods = [] if snapshot is None else templates_of(snapshot, ", ".join(options.pods))
    report = affinity_report(policies, snapshot, pods)
    for note in report.notes:
        complain(_NAME, note)
    out = output()
    if options.output == TABLE:
        out.writelines(f"{line}\n" for line in affinity_text(report))
    else:
        out.write(serialize(affinity_data(report), options.output))
    return exits.DONE
