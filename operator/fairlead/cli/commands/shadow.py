"""`fairlead shadow [POLICY]`: what rules in shadow would have changed for calls, and would change for present pods."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_kubeconfig, add_measured
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize, wants_colour, with_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.cluster_access import ClusterAccess
    from fairlead.cli.inputs.shadow_counts import PolicyInShadow
    from fairlead.cli.inputs.simulated_cluster import SimulatedCluster
    from fairlead.policy.evaluate.matching import PolicySet
    from fairlead.simulation.placement_diff import PlacementChange
    from fairlead.simulation.snapshot import Snapshot

_NAME: Final = "fairlead shadow"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "shadow",
        help="show what rules in shadow would have changed",
        description="Show what the rules in shadow of policies would have changed for the calls of schedulers, as the "
        "operator has counted it in the status: how many pods would have been left without a node, would have lost "
        "some, or would have preferred others; how many of the calls were compared, since when, and of which "
        "generation; and whether enforcing them rolls the pods of the scheduler. With --pods, also show which present "
        "pods it would touch, and how: they are simulated with your own permissions, as by `fairlead diff`. Exit code: "
        "0 if no pod would have been left without a node and enough were compared, 1 if not, also if there was no call "
        "or nothing is in shadow, 2 if a policy cannot be read.",
        epilog="Example: in a pipeline that enforces a policy, `fairlead shadow gpu-class --min-pods 100` first.",
    )
    parser.add_argument(
        "shadowed",
        nargs="?",
        default="",
        metavar="POLICY",
        help="name of the policy (default: list all that have something in shadow)",
    )
    parser.add_argument(
        "--min-pods",
        type=int,
        default=1,
        metavar="N",
        help="demand that calls of at least so many pods were compared (default: %(default)s)",
    )
    parser.add_argument("--pods", action="store_true", help="show which present pods enforcing it would touch")
    add_measured(parser)
    add_kubeconfig(parser)
    add_output(parser)
    parser.set_defaults(run=run, snapshot=[], learned=[], now=None, as_enforced=False)


def run(options: argparse.Namespace) -> int:
    """Read the policies, and print the counts of those in shadow."""
    import asyncio
    from datetime import UTC, datetime

    from fairlead.cli.inputs.cluster_access import ClusterAccess
    from fairlead.cli.inputs.shadow_counts import counts_data
    from fairlead.cli.reports.shadow_counts_text import counts_lines, counts_list

    if options.min_pods < 0:
        raise exits.CommandError(f"--min-pods {options.min_pods}: give a number of pods")
    found, cluster = asyncio.run(_read(ClusterAccess(options)))
    touched = None if cluster is None else _Touched(cluster)
    out, colour, least = output(), wants_colour(output()), options.min_pods
    if options.output == TABLE:
        now = datetime.now(UTC)
        lines = counts_list(found, least, now, colour=colour)
        if options.shadowed:
            lines = counts_lines(found[0], least, now, colour=colour)
        out.writelines(f"{line}\n" for line in lines)
        if touched is not None:
            out.writelines(f"{line}\n" for line in touched.lines(colour=colour))
    else:
        data: dict[str, Any] = {"policies": [counts_data(one, least) for one in found]}
        out.write(serialize(data | ({} if touched is None else touched.data()), options.output))
        for note in () if touched is None else touched.notes:
            complain(_NAME, note)
    is_good = bool(found) and not any([*one.problems(least)] for one in found)
    return exits.DONE if is_good else exits.FAILED


async def _read(access: "ClusterAccess") -> "tuple[Sequence[PolicyInShadow], SimulatedCluster | None]":
    from fairlead.cli.inputs.shadow_counts import policy_in_shadow
    from fairlead.control.reconcile.object_client import ObjectClient
    from fairlead.kube.errors import NotFoundError
    from fairlead.kube.resources import POLICIES

    name = access.options.shadowed
    async with access:
        client = await access.client()
        try:
            objects = [*await ObjectClient(client).all(POLICIES)]
        except NotFoundError:
            raise exits.CommandError(exits.NO_POLICIES) from None
        policies = {str(one["metadata"]["name"]): policy_in_shadow(one) for one in objects}
        if name and name not in policies:
            raise _unknown(name, policies)
        named = [policies[name]] if name else [one for _, one in sorted(policies.items()) if one.has_shadow]
        found = _with_rolls(objects, named)
        if not access.options.pods or not any(one.has_shadow for one in found):
            return found, None
        return found, await _simulated(access, found)


def _unknown(name: str, policies: "Mapping[str, PolicyInShadow]") -> exits.CommandError:
    from fairlead.api.closest_name import closest_name

    near = closest_name(name, policies)
    cure = f": did you mean {near}?" if near else "; `kubectl get sep` lists them"
    return exits.CommandError(f"there is no policy {name!r}{cure}")


def _with_rolls(
    objects: "Sequence[Mapping[str, Any]]", policies: "Sequence[PolicyInShadow]"
) -> "Sequence[PolicyInShadow]":
    """Return policies with what their schedulers would do in addition."""
    if not any(one.has_shadow for one in policies):
        return policies
    # Imported here: the model of the resource takes longer to load than everything else.
    from dataclasses import replace

    from fairlead.cli.installation.enforced_wiring import wiring_added
    from fairlead.strategies.registry import installed_policy

    model = installed_policy()
    return [replace(one, rolls=wiring_added(objects, one.name, model)) if one.has_shadow else one for one in policies]


async def _simulated(access: "ClusterAccess", shadowed: "Sequence[PolicyInShadow]") -> "SimulatedCluster":
    """Return the cluster with its policies as they are, and as they would be."""
    from fairlead.cli.inputs.cluster_access import PolicyOption
    from fairlead.cli.inputs.simulated_cluster import gather
    from fairlead.cli.inputs.simulation_inputs import Pod, pods_of_schedulers

    schedulers = {one.scheduler for one in shadowed}

    async def select(snapshot: "Snapshot", _: str, policies: "PolicySet") -> "Sequence[Pod]":
        return [one for one in pods_of_schedulers(snapshot, policies) if one.scheduler in schedulers]

    before = PolicyOption("--policies", ())
    after = PolicyOption("--policies", (), enforced=frozenset(one.name for one in shadowed))
    return await gather(access, [before, after], select)


class _Touched:
    """The present pods whose placement would change."""

    def __init__(self, cluster: "SimulatedCluster") -> None:
        from fairlead.cli.inputs.caveats import notes_on_skipped
        from fairlead.cli.inputs.created_pods import CreatedPods, judge_pod
        from fairlead.simulation.placement_diff import JudgedPod, diff_placement

        simulations = [cluster.simulation(at) for at in range(2)]
        created = [CreatedPods(cluster.snapshot, one.published) for one in cluster.versions]
        self.count = len(cluster.pods)
        self.changes: list[PlacementChange] = []
        for pod in with_progress("pods", cluster.pods):
            sides = [one.as_created(pod) for one in created]
            judged = [judge_pod(one, side) for one, side in zip(simulations, sides, strict=True)]
            rows = zip(simulations, sides, judged, strict=True)
            change = diff_placement(*(JudgedPod(one, side.raw, result) for one, side, result in rows))
            if change is not None:
                self.changes.append(change)
        skipped = notes_on_skipped(each for version in cluster.versions for each in version.skipped)
        self.notes = [*dict.fromkeys([*cluster.notes(), *skipped])]

    def lines(self, *, colour: bool) -> "Sequence[str]":
        from fairlead.cli.reports.diff_text import diff_lines

        return ["", "If it were enforced now:", *diff_lines(self.changes, self.count, self.notes, colour=colour)]

    def data(self) -> "dict[str, Any]":
        import msgspec

        from fairlead.cli.reports.diff_text import NOT_SIMULATED, pod_diff

        pods = [msgspec.to_builtins(pod_diff(one), enc_hook=str) for one in self.changes]
        unchanged = self.count - len(pods)
        return {"pods": pods, "unchanged": unchanged, "notSimulated": [*NOT_SIMULATED], "notes": self.notes}
