"""`fairlead simulate`: the nodes that pods could use with policies that are not applied yet."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_as_enforced, add_cluster, add_learned, add_pods, add_policies
from fairlead.cli.console.output import TABLE, add_output, complain, output, wants_colour, with_progress

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.simulation_inputs import Pod
    from fairlead.simulation.results import PodResult

_NAME: Final = "fairlead simulate"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "simulate",
        help="show which nodes pods could use and would prefer with given policies",
        description="Show for each pod which nodes it fits on, which of them the policies allow, and which they "
        "prefer. Each pod is simulated by itself, against the cluster as it is: pods take no capacity from each "
        "other, and a pod that has a node is treated as if it had none. Pods get the node affinity that policies "
        "publish, as if they were created now, unless they were created with some. Nothing is changed anywhere. Exit "
        "code: 0 if every pod could be simulated, 1 if a policy has errors, 2 if an input cannot be read.",
        epilog="Example: `kubectl get nodes,pods,namespaces -A -o json > now.json`, then "
        "`fairlead simulate --policies gpu.yaml --snapshot now.json --pods train.yaml`.",
    )
    add_policies(parser, required=True)
    add_pods(parser)
    add_cluster(parser)
    add_learned(parser)
    add_as_enforced(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate the pods."""
    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access

    option = PolicyOption("--policies", options.policies, as_enforced=options.as_enforced)
    access = cluster_access(options, [option])
    from fairlead.cli.console.whole_output import ListWriter
    from fairlead.cli.inputs.caveats import AffinityNotes, notes_on_schedulers, notes_on_skipped
    from fairlead.cli.inputs.created_pods import CreatedPods, judge_pod
    from fairlead.cli.inputs.shadow_effects import ShadowSummary
    from fairlead.cli.inputs.simulated_cluster import pods_to_check, read_cluster
    from fairlead.cli.reports import simulate_text
    from fairlead.cli.reports.shadow_text import AS_ENFORCED, summary_data, summary_line
    from fairlead.simulation.results import result_for_programs
    from fairlead.simulation.rule_notes import FlatScores, RuleNotes

    cluster = read_cluster(access, [option], pods_to_check(options.pods))
    [version] = cluster.versions
    pods, simulation = cluster.pods, cluster.simulation()
    others = notes_on_schedulers(cluster.schedulers(), version.policies.policies)
    notes = [*cluster.notes(), *others, *notes_on_skipped(version.skipped)]
    out = output()
    created, of_affinity = CreatedPods(cluster.snapshot, version.published), AffinityNotes()
    of_rules, flat = RuleNotes(simulation), FlatScores(simulation)
    shadow, in_shadow = cluster.shadow(), ShadowSummary()

    def judge(pod: "Pod") -> "PodResult":
        pod = created.as_created(pod)
        found = judge_pod(simulation, pod)
        of_affinity.add(found)
        if shadow is not None:
            in_shadow.add(shadow.judge(pod, found))
        of_rules.add(pod.raw, found)
        flat.add(pod.raw, found)
        return found

    judged = map(judge, with_progress("pods", pods))
    if options.output == TABLE:
        rows = [(one.pod, simulate_text.row(one)) for one in judged]
        notes += [*of_rules.texts(), *flat.texts(), *of_affinity.texts()]
        said, colour = summary_line(in_shadow, AS_ENFORCED), wants_colour(out)
        for line in simulate_text.simulate_lines(rows, len(simulation.names), notes, in_shadow=said, colour=colour):
            print(line, file=out)
        return exits.DONE
    with ListWriter(options.output, "pods") as spool:
        for one in judged:
            spool.add(result_for_programs(one))
        notes += [*of_rules.texts(), *flat.texts(), *of_affinity.texts()]
        rest = {"shadow": summary_data(in_shadow), "notSimulated": [*simulate_text.NOT_SIMULATED], "notes": notes}
        spool.end(out, rest)
    for note in notes:
        complain(_NAME, note)
    return exits.DONE
