"""`fairlead diff`: the pods whose placement differs between two versions of policies, and the rules that cause it."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_data, add_kubeconfig, add_now, add_pods, add_snapshot
from fairlead.cli.console.output import TABLE, add_output, complain, output, wants_colour, with_progress

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead diff"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "diff",
        help="show which pods' placement a change of policies affects",
        description="Compare two versions of policies: which pods lose nodes, gain nodes or prefer other nodes, and "
        "because of which rule. Each pod is simulated as by `fairlead simulate`. Nothing is changed anywhere. Exit "
        "code: 0 if no pod is affected, 1 if a pod is affected or a policy has errors, 2 if an input cannot be read.",
        epilog="Example: `fairlead diff --from main/policies --to policies --snapshot live --pods pods.json`.",
    )
    parser.add_argument(
        "--from", nargs="+", metavar="FILE|DIR", required=True, dest="before", help="the policies before the change"
    )
    parser.add_argument(
        "--to", nargs="+", metavar="FILE|DIR", required=True, dest="after", help="the policies after the change"
    )
    add_snapshot(parser)
    add_pods(parser)
    add_data(parser)
    add_now(parser)
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Compare two versions of policies."""
    from fairlead.cli.console.exits import run_command

    return run_command(_NAME, lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    from fairlead.cli.console.whole_output import ListWriter
    from fairlead.cli.inputs.caveats import of_schedulers, of_skipped
    from fairlead.cli.inputs.cluster_source import judgeable_policies, open_source, pods_to_check
    from fairlead.cli.inputs.data_file import given_data
    from fairlead.cli.inputs.live_values import add_read
    from fairlead.cli.inputs.simulation_inputs import moment_of, policies_of
    from fairlead.cli.reports import diff_text
    from fairlead.policy.evaluate.matching import PolicySet
    from fairlead.simulation.placement_diff import changed
    from fairlead.simulation.simulation import Simulation

    now = moment_of(given.now)
    before, after = policies_of(given.before), policies_of(given.after)
    both = PolicySet((*before.policies, *after.policies))
    sight = open_source(given)
    pods = pods_to_check(given, sight, both)
    data = given_data(given.data, both.policies, [name for _, name in sight.snapshot.nodes], now)
    add_read(data, given, sight, both.policies, now)
    before, blind = judgeable_policies(before, sight, data.readings)
    after, more = judgeable_policies(after, sight, data.readings)
    one = Simulation(before, sight.snapshot, now, readings=data.readings, each=with_progress)
    other = Simulation(after, sight.snapshot, now, readings=data.readings, each=with_progress)
    others = of_schedulers((pod.scheduler for pod in pods), both.policies)
    notes = [
        *sight.notes(both.policies, pods, given),
        *others,
        *dict.fromkeys(data.notes),
        *dict.fromkeys(of_skipped([*blind, *more])),
    ]
    found = (changed(one, other, pod.raw, pod.file) for pod in with_progress("pods", pods))
    out = output()
    count = 0
    if given.output == TABLE:
        rows = [each for each in found if each is not None]
        count = len(rows)
        for line in diff_text.diff_lines(rows, len(pods), notes, colour=wants_colour(out)):
            print(line, file=out)
        return exits.FAILED if count else exits.DONE
    with ListWriter(given.output, "pods") as spool:
        for each in found:
            if each is not None:
                count += 1
                spool.add(diff_text.shown(each))
        rest = {"unchanged": len(pods) - count, "notSimulated": [*diff_text.NOT_SIMULATED], "notes": notes}
        spool.end(out, rest)
    for note in notes:
        complain(_NAME, note)
    return exits.FAILED if count else exits.DONE
