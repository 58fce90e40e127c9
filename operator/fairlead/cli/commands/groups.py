"""`fairlead groups [NAMESPACE/VALUE]`: groups of pods that start together, and what each of them waits for."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.options import add_cluster, add_policies
from fairlead.cli.console.output import TABLE, add_output, clean, complain, output, pluralize, serialize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.cluster_access import ClusterAccess, PolicyOption
    from fairlead.cli.inputs.simulated_cluster import SimulatedCluster
    from fairlead.policy.explain.group_overview import GroupOverview
    from fairlead.simulation.snapshot import Key

_NAME: Final = "fairlead groups"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "groups",
        help="show groups of pods, and what each of them waits for",
        description="Show the groups of pods by policies with `binding.gang`: the scheduler, the state (Waiting, Turn, "
        "Resting or Started), how many members are held, how many must find room together, how many are known, since "
        "when that is so, and what the group waits for. With NAMESPACE/VALUE, only that group, with its members: the "
        "node of each, also if it is held there, or the text with which its scheduler refused it. Turns and rests are "
        "those that the operator has published. Reads with your own permissions. Exit code: 0, 1 if what is published "
        "cannot be read, 2 if another input cannot be read, or there is no such group.",
        epilog="Example without a cluster: `kubectl get nodes,pods,namespaces,configmaps -A -o json > now.json`, then "
        "`fairlead groups --policies jobs.yaml --snapshot now.json`.",
    )
    parser.add_argument(
        "group",
        metavar="NAMESPACE/VALUE",
        nargs="?",
        default="",
        help="show this group and its members: the namespace, and the value of `group` for its pods",
    )
    add_policies(parser)
    add_cluster(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show groups."""
    import asyncio

    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access

    namespace, slash, value = options.group.partition("/")
    if options.group and not (namespace and slash and value):
        raise CommandError(f"{options.group!r} is no group: write its namespace and value, as ml/train")
    option = PolicyOption("--policies", options.policies)
    access = cluster_access(options, [option])
    from fairlead.cli.inputs.snapshot_groups import groups_in, has_groups, published_turns, with_domains
    from fairlead.cli.reports.groups_report import groups_report
    from fairlead.cli.reports.groups_text import groups_text

    cluster = asyncio.run(_read(access, option, (namespace, "") if namespace else None))
    policies = cluster.versions[0].policies
    published = published_turns(cluster.snapshot)
    overview = groups_in(cluster.snapshot, policies, published.turns, cluster.now)
    overview = with_domains(overview, cluster.snapshot, policies)
    if options.group:
        overview = _named(overview, namespace, options.group)
    if has_groups(policies):
        for note in (*_notes(cluster), *published.notes, *published.faults):
            complain(_NAME, note)
    out = output()
    if options.output == TABLE:
        lines = groups_text(overview, cluster.now, has_groups=has_groups(policies), with_members=bool(options.group))
        out.writelines(f"{line}\n" for line in lines)
    else:
        report = groups_report(overview, published, cluster.now, with_members=bool(options.group))
        out.write(serialize(report, options.output))
    return exits.FAILED if published.faults else exits.DONE


async def _read(access: "ClusterAccess", option: "PolicyOption", scope: "Key | None") -> "SimulatedCluster":
    from fairlead.cli.inputs.cluster_reader import read_turns
    from fairlead.cli.inputs.simulated_cluster import gather, no_pods

    async with access:
        cluster = await gather(access, [option], no_pods, scope=scope, matters=lambda *_: ())  # nothing is measured
        if cluster.is_live:
            await read_turns(await access.client(), cluster.live, cluster.versions[0].policies.policies)
        return cluster


def _named(overview: "GroupOverview", namespace: str, name: str) -> "GroupOverview":
    """Return the groups of a name, one of each scheduler; it may be written as tables show it."""
    from fairlead.api.closest_name import closest_name

    groups = [one for one in overview.groups if name in (one.name, clean(one.name))]
    undecided = [one for one in overview.undecided if one.namespace == namespace]
    if not groups:
        near = closest_name(name, (one.name for one in overview.groups))
        cure = f": did you mean {near}?" if near else ""
        if undecided:
            cure = f"; of {pluralize(len(undecided), 'pod')} in {namespace} the group cannot be decided"
        raise CommandError(f"there is no group {name}{cure}")
    return overview._replace(groups=groups, undecided=undecided)


def _notes(cluster: "SimulatedCluster") -> "Iterator[str]":
    """Yield notes on what could not be read."""
    live = cluster.live
    if live.unread_turns or not (cluster.is_live or cluster.snapshot.turns):
        yield f"turns and rests are unknown: {live.unread_turns or 'the snapshot has no such ConfigMaps'}"
    if live.unread_domains:
        yield f"the domains of groups are unknown: {live.unread_domains}"
    if "pods" in live.unread:
        yield f"groups of other namespaces are unknown: {live.unread['pods']}"
    if "namespace" in live.unread:
        yield f"labels of namespaces are unknown, by which policies may select pods: {live.unread['namespace']}"
