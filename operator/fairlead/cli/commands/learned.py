"""`fairlead learned [POLICY]`: what the rules of policies have learned of pods on nodes."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.options import add_cluster, add_policies
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead learned"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "learned",
        help="show what rules have learned of pods and nodes",
        description="Show what rules have learned. Of kubeRL: by type of pods and node the score of now, the outcomes "
        "that it is made of, and the age of the last one, the lowest score first; nodes that are gone are marked. Of "
        "pigeon: the number of pods whose requests it knows, their mean, how varied the requests and the loads of the "
        "nodes are (gamma), and whether it spreads or packs now. Of each rule: its ConfigMaps, their size and the age "
        "of the last publication, the outcomes that came too late to count, and what cannot be read. With POLICY, only "
        "of that policy. Reads with your own permissions. The output in JSON or YAML can be read back: `simulate`, "
        "`diff` and `explain` take it as --learned, and suites its field `learned`. Exit code: 0, 1 if a ConfigMap "
        "cannot be read or a snapshot has none, 2 if another input cannot be read.",
        epilog="Example without a cluster: `kubectl get nodes,pods,configmaps -A -o json > now.json`, then "
        "`fairlead learned --policies works.yaml --snapshot now.json`. What a policy has learned, as a file: "
        "`fairlead learned works -o yaml > learned.yaml`.",
    )
    parser.add_argument("policy", metavar="POLICY", nargs="?", default="", help="show what this policy has learned")
    parser.add_argument("--rule", metavar="NAME", default="", help="show what this rule has learned")
    add_policies(parser)
    add_cluster(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show what was learned."""
    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access

    option = PolicyOption("--policies", options.policies)
    access = cluster_access(options, [option])
    from fairlead.cli.inputs.simulated_cluster import no_pods, read_cluster
    from fairlead.cli.inputs.simulation_inputs import policies_that_learn
    from fairlead.cli.reports.learned_report import learned_report
    from fairlead.cli.reports.learned_text import learned_text

    cluster = read_cluster(access, [option], lambda _: no_pods, policies_that_learn)
    policies = cluster.versions[0].policies.policies
    if options.policy and options.policy not in (names := sorted(one.name for one in policies)):
        raise CommandError(f"there is no policy {options.policy}; there are {', '.join(names) or 'none'}")
    wanted = [one for one in policies if options.policy in ("", one.name)]
    rules = [name for one in wanted for name, _ in (*one.learning, *one.demanding)]
    if options.rule and options.rule not in rules:
        raise CommandError(f"no rule {options.rule} learns; those that do are {', '.join(sorted(rules)) or 'none'}")
    if cluster.live.unread_learned and rules:
        complain(_NAME, f"what rules have learned is unknown: {cluster.live.unread_learned}")
    simulation = cluster.simulation()
    report = learned_report(wanted, options.rule, simulation, unread=cluster.live.unread_learned)
    out = output()
    if options.output == TABLE:
        out.writelines(f"{line}\n" for line in learned_text(report))
    else:
        out.write(serialize(report, options.output))
    return exits.DONE if all(one["readable"] for one in report["rules"]) else exits.FAILED
