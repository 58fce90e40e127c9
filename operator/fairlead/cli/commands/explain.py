"""`fairlead explain pod/NAME`: which nodes a pod can use, and why not the others."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_data, add_kubeconfig, add_now, add_prometheus, add_snapshot
from fairlead.cli.console.output import TABLE, WIDE, add_output, dumped, output, wants_colour, with_progress

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.cluster_source import ClusterSource
    from fairlead.cli.inputs.simulation_inputs import Pod
    from fairlead.cli.installation.scheduling import Scheduling
    from fairlead.policy.evaluate.matching import PolicySet
    from fairlead.simulation.results import NodeResult, PodResult

_NAME: Final = "fairlead explain"
_KINDS: Final = ("pod", "pods", "po")


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "explain",
        help="explain why a pod can or cannot go to nodes",
        description="Show which nodes a pod can use, which rule rejects each other node and the values that it "
        "compared, and which node is closest. Uses the rules that answer the scheduler, as if the pod were placed "
        "now. Also says what the pod's scheduler reported last, and whether it and the operator are alive. Reads "
        "with your own permissions and names what you may not read. Exit code: 0 if the pod could be explained, 1 if "
        "a rule could not be evaluated or a policy in a file has errors, 2 if an input cannot be read.",
        epilog="Examples: `fairlead explain pod/train-0 -n ml`; each node with its score and reason: add `-o wide`; "
        "one node in full: add `--node gpu-7`; a policy that is not applied yet: add `--policies gpu.yaml`; a pod that "
        "does not exist yet: `fairlead explain -f pod.yaml`; without a cluster: also add `--snapshot now.json`.",
    )
    parser.add_argument("pod", nargs="*", metavar="pod/NAME", help="the pod to explain; `pod NAME` and NAME do too")
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE|DIR|-",
        help="explain the pod in this file, which need not exist yet, as if it were in the cluster",
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", default="", help="namespace of the pod (default: that of the kubeconfig)"
    )
    parser.add_argument("--node", metavar="NAME", default="", help="explain this node in full")
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="FILE|DIR",
        default=[],
        help="use these policies instead of those of the cluster",
    )
    add_snapshot(parser, default="live")
    add_data(parser)
    add_prometheus(parser)
    add_now(parser)
    add_kubeconfig(parser)
    add_output(parser, TABLE, WIDE, "json", "yaml")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Explain a pod."""
    from fairlead.cli.console.exits import run_command

    return run_command(_NAME, lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    from dataclasses import replace

    from fairlead.cli.inputs.caveats import of_judged, of_skipped
    from fairlead.cli.inputs.cluster_source import judgeable_policies, policies_in_files
    from fairlead.cli.inputs.data_file import given_data
    from fairlead.cli.inputs.live_policies import unknown_rules
    from fairlead.cli.inputs.live_values import add_read
    from fairlead.cli.inputs.prometheus_values import add_asked, servers_of
    from fairlead.cli.inputs.simulation_inputs import moment_of
    from fairlead.cli.installation.last_good import add_last_good
    from fairlead.cli.installation.replica_values import add_replica_values
    from fairlead.cli.reports import explain_data, explain_text
    from fairlead.cli.reports.explain_data import ExplainContext
    from fairlead.policy.evaluate.matching import PolicySet, policy_set
    from fairlead.simulation.explain_pod import explanation, one_node
    from fairlead.simulation.rule_notes import RuleNotes
    from fairlead.simulation.simulation import Simulation, policies_for

    now, servers = moment_of(given.now), servers_of(given.prometheus)
    in_files = policies_in_files(given)
    sight, pod = _sight(given)
    if in_files is None:
        add_last_good(given, sight)
    policies = in_files or sight.policies
    scheduling = _scheduling(given, sight, pod, policies)
    if scheduling.is_unanswered and not scheduling.waits:
        policies = PolicySet()  # the scheduler goes on without them
    concerned = policies_for(policies.policies, sight.snapshot, pod.raw, now, pod.file)
    data = given_data(given.data, policies.policies, [name for _, name in sight.snapshot.nodes], now, noted=concerned)
    add_asked(data, servers, given.prometheus_token, policies.policies, sight.snapshot, now, wanted=concerned)
    add_read(data, given, sight, concerned, now)
    if sight.is_live and in_files is None:  # an entry of a file may measure something else under its name
        add_replica_values(data, given, concerned)
    judgeable, skipped = judgeable_policies(policy_set(policies.policies), sight, data.readings)
    if in_files is None and not scheduling.is_unanswered:
        skipped = [*skipped, *unknown_rules(sight.live.policies)]
    world = Simulation(judgeable, sight.snapshot, now, readings=data.readings, skipped=skipped, each=with_progress)
    judged = replace(world.judge(pod.raw, pod.file), unanswered=scheduling.waits)
    of_rules = RuleNotes(world)
    of_rules.add(pod.raw, judged)
    unevaluated = of_skipped(judged.unevaluated, asks_prometheus=True)
    notes = [
        *sight.notes(concerned, [pod], given),
        *data.notes,
        *unevaluated,
        *of_rules.texts(scores_only=True),
        *of_judged(judged),
    ]
    about = ExplainContext(judged, now, sight.live.policies, scheduling, notes, len(world.names))
    out = output()
    done = exits.FAILED if judged.unevaluated else exits.DONE
    is_text, colour = given.output in (TABLE, WIDE), wants_colour(out)
    if given.node:
        one = one_node(world, pod.raw, judged, _node(judged, given.node))
        if is_text:
            out.writelines(f"{line}\n" for line in explain_text.node_text(about, one, colour=colour))
        else:
            out.write(dumped(explain_data.node_data(about, one), given.output))
        return done
    found = explanation(world, pod.raw, judged)
    if is_text:
        lines = explain_text.explanation_text(about, found, wide=given.output == WIDE, colour=colour)
        out.writelines(f"{line}\n" for line in lines)
    else:
        out.write(dumped(explain_data.explanation_data(about, found), given.output))
    return done


def _scheduling(given: argparse.Namespace, sight: "ClusterSource", pod: "Pod", policies: "PolicySet") -> "Scheduling":
    """Return what the cluster says of the pod's scheduling; what files say of it if they take its place."""
    from dataclasses import replace

    from fairlead.cli.installation.scheduling import scheduling_in_files, scheduling_of

    if not sight.is_live or given.policies:
        named = {one.scheduler_name for one in policies.policies}
        return scheduling_in_files(pod.raw, pod.scheduler, named, is_new=given.filename is not None)
    found = scheduling_of(given, pod.raw, pod.scheduler, sight.live.policies)
    return replace(found, is_new=given.filename is not None)


def _sight(given: argparse.Namespace) -> "tuple[ClusterSource, Pod]":
    """Return the cluster and the pod. Raises CommandError."""
    from fairlead.cli.inputs.cluster_source import open_source
    from fairlead.cli.inputs.simulation_inputs import LIVE, pod_in_file, pod_of
    from fairlead.kube.access.access import find_access

    name, namespace = _name(given), given.namespace
    pod = None
    if given.snapshot == [LIVE]:
        namespace = namespace or find_access(given.kubeconfig, given.context).namespace
    if given.filename is not None:
        pod = pod_in_file(given.filename, namespace, name)
        namespace, name = pod.key
    if given.snapshot == [LIVE]:
        sight = open_source(given, policies=not given.policies, pod=(namespace, name))
    else:
        sight = open_source(given)
    return sight, pod or pod_of(sight.snapshot, namespace, name, sight.where)


def _name(given: argparse.Namespace) -> str:
    """Return the name of the pod; "" if the file says it. Raises CommandError."""
    from fairlead.cli.console.exits import CommandError

    words: list[str] = given.pod
    *kinds, last = words or [""]
    kind, slash, name = last.rpartition("/")
    if not words and given.filename is None:
        given.parser.error("the following arguments are required: pod/NAME, or -f FILE")
    kinds += [kind] if slash else []
    if len(kinds) > 1 or not {*kinds} <= {*_KINDS} or (words and not name):
        said = " ".join(words)
        raise CommandError(f"{said!r} is not a pod: write pod/NAME, and its namespace as -n NAME")
    return name


def _node(judged: "PodResult", name: str) -> "NodeResult":
    from fairlead.cli.inputs.cluster_source import unknown_node

    found = judged.node(name)
    if found is None:
        raise unknown_node(name, (node.name for node in judged.nodes))
    return found
