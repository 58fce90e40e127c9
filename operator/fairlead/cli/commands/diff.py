"""`fairlead diff`: the pods whose placement differs between two versions of policies, and the rules that cause it."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_as_enforced, add_cluster, add_learned, add_pods
from fairlead.cli.console.output import TABLE, add_output, complain, output, wants_colour, with_progress

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.simulation_inputs import Pod

_NAME: Final = "fairlead diff"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "diff",
        help="show which pods a change of policies affects",
        description="Compare two versions of policies: which pods lose nodes, gain nodes or prefer other nodes, and "
        "because of which rule. Each pod is simulated as by `fairlead simulate`. Nothing is changed anywhere. Exit "
        "code: 0 if no pod is affected, also if there is none to compare, 1 if a pod is or may be affected or a policy "
        "has errors, 2 if an input cannot be read.",
        epilog="Examples: what an edit would change in this cluster: `fairlead diff --from live --to gpu.yaml`; two "
        "versions in a repository: `fairlead diff --from main/policies --to policies --snapshot now.json`.",
    )
    parser.add_argument(
        "--from",
        nargs="+",
        action="extend",
        metavar="FILE|DIR|live",
        required=True,
        dest="before",
        help="the policies before the change; live: those of the cluster, to which the files of --to are applied",
    )
    parser.add_argument(
        "--to",
        nargs="+",
        action="extend",
        metavar="FILE|DIR",
        required=True,
        dest="after",
        help="the policies after the change",
    )
    add_pods(parser)
    add_cluster(parser)
    add_learned(parser)
    add_as_enforced(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare two versions of policies."""
    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access

    before = PolicyOption("--from", options.before, as_enforced=options.as_enforced)
    after = PolicyOption("--to", options.after, applied=before.is_live, as_enforced=options.as_enforced)
    access = cluster_access(options, [before, after])
    from fairlead.cli.console.whole_output import ListWriter
    from fairlead.cli.inputs.caveats import AffinityNotes, notes_on_schedulers, notes_on_skipped
    from fairlead.cli.inputs.created_pods import CreatedPods, judge_pod
    from fairlead.cli.inputs.shadow_effects import ShadowSummary
    from fairlead.cli.inputs.simulated_cluster import pods_to_check, read_cluster
    from fairlead.cli.reports import diff_text
    from fairlead.cli.reports.shadow_text import summary_data, summary_line
    from fairlead.simulation.placement_diff import JudgedPod, PlacementChange, diff_placement

    cluster = read_cluster(access, [before, after], pods_to_check(options.pods))
    pods, simulations = cluster.pods, [cluster.simulation(at) for at in range(2)]
    created = [CreatedPods(cluster.snapshot, one.published) for one in cluster.versions]
    of_affinity = AffinityNotes()
    shadow, in_shadow = cluster.shadow(1), ShadowSummary()
    others = notes_on_schedulers(cluster.schedulers(), cluster.concerned)
    skipped = [each for version in cluster.versions for each in version.skipped]
    notes = [*cluster.notes(), *others, *dict.fromkeys(notes_on_skipped(skipped))]

    def compare(pod: "Pod") -> PlacementChange | None:
        sides = [one.as_created(pod) for one in created]
        judged = [judge_pod(one, side) for one, side in zip(simulations, sides, strict=True)]
        of_affinity.add(judged[1])
        if shadow is not None:
            in_shadow.add(shadow.judge(sides[1], judged[1]))
        rows = zip(simulations, sides, judged, strict=True)
        return diff_placement(*(JudgedPod(one, side.raw, result) for one, side, result in rows))

    found = map(compare, with_progress("pods", pods))
    out = output()
    count = 0
    if options.output == TABLE:
        rows = [each for each in found if each is not None]
        count = len(rows)
        notes += of_affinity.texts()
        said, colour = summary_line(in_shadow), wants_colour(out)
        for line in diff_text.diff_lines(rows, len(pods), notes, in_shadow=said, colour=colour):
            print(line, file=out)
        return exits.FAILED if count else exits.DONE
    with ListWriter(options.output, "pods") as spool:
        for each in found:
            if each is not None:
                count += 1
                spool.add(diff_text.pod_diff(each))
        notes += of_affinity.texts()
        rest = {
            "unchanged": len(pods) - count,
            "shadow": summary_data(in_shadow),
            "notSimulated": [*diff_text.NOT_SIMULATED],
            "notes": notes,
        }
        spool.end(out, rest)
    for note in notes:
        complain(_NAME, note)
    return exits.FAILED if count else exits.DONE
