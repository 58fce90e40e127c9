"""`fairlead explain`: which nodes a pod can use, and why not the others; for a workload and for all that wait, too."""

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_as_enforced, add_cluster, add_learned, add_policies, repeated
from fairlead.cli.console.output import TABLE, WIDE, add_output, clean, output, serialize, wants_colour, with_progress

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.cluster_access import ClusterAccess, PolicyOption
    from fairlead.cli.inputs.explain_target import ExplainTarget
    from fairlead.cli.reports.explained_pods import ExplainedPods
    from fairlead.simulation.results import NodeResult, PodResult
    from fairlead.simulation.workloads import WorkloadKind


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "explain",
        help="explain which nodes a pod can use, and why not the others",
        description="Show which nodes a pod can use, which rule rejects each other node and the values that it "
        "compared, and which node is closest. Uses the rules that answer the scheduler, as if the pod were placed "
        "now. Also says what the pod's scheduler reported last, whether it and the operator are alive, and what of the "
        "pod's node affinity policies publish. Reads with your own permissions and names what you may not read. Exit "
        "code: 0 if the pod could be explained, 1 if a rule could not be evaluated or a policy in a file has errors, 2 "
        "if an input cannot be read.",
        epilog="Examples: what waits, and why: `fairlead explain --pending -n ml`; a pod: `fairlead explain "
        "pod/train-0 -n ml`; a workload: `fairlead explain deploy/web -n ml`; each node with its score and reason: add "
        "`-o wide`; one node in full: add `--node gpu-7`; a policy that is not applied yet: add `--policies gpu.yaml`; "
        "a pod that does not exist yet: `fairlead explain -f pod.yaml`; without a cluster: also add "
        "`--snapshot now.json`.",
    )
    parser.add_argument(
        "pod",
        nargs="*",
        metavar="KIND/NAME",
        help="the pod to explain, as pod/NAME or NAME, or the workload, as deploy/NAME, sts/NAME, ds/NAME, rs/NAME, "
        "job/NAME or cj/NAME: one of its pods, the waiting ones first, or its template if it has none",
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="explain the pod in this file, or the template of a workload, as if it were in the cluster",
    )
    parser.add_argument("--pending", action="store_true", help="explain all pods that wait for a node, by reason")
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", default="", help="namespace of the pod (default: that of the kubeconfig)"
    )
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="with --pending: of all namespaces")
    parser.add_argument("--node", metavar="NAME", default="", help="explain this node in full")
    add_policies(parser)
    add_cluster(parser)
    add_learned(parser)
    add_as_enforced(parser)
    add_output(parser, TABLE, WIDE, "json", "yaml")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain a pod."""
    import asyncio

    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access
    from fairlead.cli.inputs.explain_arguments import named_object

    kind, name = named_object(options)
    option = PolicyOption("--policies", options.policies, as_enforced=options.as_enforced)
    access = cluster_access(options, [option])
    target, found = asyncio.run(_read(access, option, kind, name))
    if options.pending:
        return _explain_pending(options, target.namespace, found)
    return _explain(options, target, found)


def _explain_pending(options: argparse.Namespace, namespace: str, explained: "ExplainedPods") -> int:
    from fairlead.cli.inputs.caveats import notes_on_skipped
    from fairlead.cli.reports.pending_text import pending_data, pending_groups, pending_lines

    out = output()
    pods = [explained.context(pod) for pod in with_progress("pods", explained.cluster.pods)]
    groups = pending_groups(pods)
    unevaluated = [*dict.fromkeys(notes_on_skipped(rule for each in pods for rule in each.judged.unevaluated))]
    notes = [*explained.notes(), *unevaluated]
    if options.output in (TABLE, WIDE):
        lines = pending_lines(groups, namespace, notes, options=repeated(options), colour=wants_colour(out))
        out.writelines(f"{line}\n" for line in lines)
    else:
        out.write(serialize(pending_data(groups, namespace, explained.cluster.now, notes), options.output))
    return exits.FAILED if unevaluated else exits.DONE


def _explain(options: argparse.Namespace, target: "ExplainTarget", pods: "ExplainedPods") -> int:
    from dataclasses import replace

    from fairlead.cli.inputs.caveats import notes_on_judged, notes_on_skipped
    from fairlead.cli.reports import explain_data, explain_text
    from fairlead.cli.reports.workload_text import workload_data, workload_lines
    from fairlead.simulation.explain_pod import explain_node, explanation
    from fairlead.simulation.rule_notes import RuleNotes

    pod, workload = pods.cluster.pods[0], None
    if target.ref is not None:
        pod, workload = pods.of_workload(target.ref, target.workload)
    about, simulation = pods.context(pod, is_new=target.in_file is not None), pods.simulation_of(pod.scheduler)
    judged, of_rules = about.judged, RuleNotes(simulation)
    of_rules.add(pod.raw, judged)
    notes = [
        *pods.notes(pod.scheduler),
        *notes_on_skipped(judged.unevaluated),
        *of_rules.texts(scores_only=True),
        *notes_on_judged(judged),
    ]
    about = replace(about, notes=notes)
    of_workload = {"workload": None if workload is None else workload_data(workload)}
    out = output()
    done = exits.FAILED if judged.unevaluated else exits.DONE
    is_text, colour = options.output in (TABLE, WIDE), wants_colour(out)
    if is_text and workload is None and pod.template_of:
        out.write(f"This explains the template of the {clean(pod.template_of)}.\n\n")
    if is_text and workload is not None:
        out.writelines(f"{line}\n" for line in workload_lines(workload, colour=colour))
    if options.node:
        one = explain_node(simulation, pod.raw, judged, _node(judged, options.node))
        about = replace(about, in_shadow=pods.rejections_in_shadow(about, pod, ()))
        if is_text:
            rules = pods.rules_in_shadow(about, pod, one.node.name)
            out.writelines(f"{line}\n" for line in explain_text.node_text(about, one, rules, colour=colour))
        else:
            out.write(serialize(explain_data.node_data(about, one) | of_workload, options.output))
        return done
    explained = explanation(simulation, pod.raw, judged)
    about = replace(about, in_shadow=pods.rejections_in_shadow(about, pod, explained.evictions))
    if is_text:
        lines = explain_text.explanation_text(about, explained, wide=options.output == WIDE, colour=colour)
        out.writelines(f"{line}\n" for line in lines)
    else:
        out.write(serialize(explain_data.explanation_data(about, explained) | of_workload, options.output))
    return done


async def _read(
    access: "ClusterAccess", option: "PolicyOption", kind: "WorkloadKind | None", name: str
) -> "tuple[ExplainTarget, ExplainedPods]":
    from fairlead.cli.inputs.cluster_reader import read_published
    from fairlead.cli.inputs.explain_target import target_of
    from fairlead.cli.inputs.simulated_cluster import gather
    from fairlead.cli.inputs.simulation_inputs import policies_of_pods
    from fairlead.cli.installation.scheduling import scheduling_in_files, scheduling_of
    from fairlead.cli.reports.explained_pods import ExplainedPods

    async with access:
        target = target_of(access, kind, name)
        cluster = await gather(access, [option], target.select, scope=target.scope, matters=policies_of_pods)
        if cluster.is_live and option.is_live:
            cluster = cluster.publishing(await read_published(await access.client()))
        # A pod that exists keeps the affinity that it has.
        cluster = cluster.with_created(lambda pod: target.in_file is not None or bool(pod.template_of))
        named = {one.scheduler_name for version in cluster.versions for one in version.policies.policies}
        first = {pod.scheduler: pod for pod in reversed(cluster.pods)}
        if cluster.is_live and option.is_live:
            client = await access.client()
            live = cluster.live_policies
            schedulers = {name: await scheduling_of(client, one.raw, name, live) for name, one in first.items()}
        else:
            schedulers = {name: scheduling_in_files(one.raw, name, named) for name, one in first.items()}
        return target, ExplainedPods(cluster, schedulers)


def _node(judged: "PodResult", name: str) -> "NodeResult":
    from fairlead.cli.inputs.simulation_inputs import unknown_node

    found = judged.node(name)
    if found is None:
        raise unknown_node(name, (node.name for node in judged.nodes))
    return found
