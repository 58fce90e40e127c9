"""Effects of an edited policy: findings of lint, then how the placement of pods differs from that in force. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.cli.console.output import pluralize
from fairlead.cli.inputs.caveats import notes_on_skipped
from fairlead.cli.inputs.checker import Checker
from fairlead.cli.inputs.created_pods import CreatedPods, judge_pod
from fairlead.cli.inputs.findings import Severity
from fairlead.cli.inputs.shadow_effects import ShadowSummary
from fairlead.cli.inputs.shadow_simulation import ShadowSimulation
from fairlead.cli.reports.diff_text import diff_lines
from fairlead.cli.reports.lint_text import finding_lines
from fairlead.cli.reports.shadow_text import summary_line
from fairlead.cli.ui.shown_pods import ShownPods, with_policies, with_rules_in_shadow
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.placement_diff import JudgedPod, PlacementChange, diff_placement
from fairlead.simulation.simulation import Simulation
from fairlead.strategies.contract import Strategy

FILE: Final = "policy.yaml"
LINES_MAX: Final = 400
LineKind = Literal["Error", "Warning", "Worse", "Better", "Head", "Plain"]
_KINDS: Final[Mapping[Severity, LineKind]] = {
    "error": "Error",
    "warning": "Warning",
    "accepted": "Plain",
    "note": "Plain",
}
_WORSE: Final = ("    loses ", "    has no node left")
_BETTER: Final = ("    gains ", "    had no node")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an answer; its kind only chooses a colour for what the text says."""

    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class Linted:
    """Result of lint, with the policies if they compile."""

    lines: Sequence[Line]
    policies: Sequence[CompiledPolicy] | None
    """None if something is wrong with one."""


def lint_text(text: bytes, custom: Mapping[str, Strategy]) -> Linted:
    """Lint a text of the editor, in UTF-8."""
    checker = Checker(custom=custom)
    checker.check(FILE, text)
    report = checker.finish()
    lines = [
        Line(_KINDS[finding.severity], line)
        for finding in report.findings
        for line in finding_lines(finding, colour=False)
    ]
    if report.count("error"):
        return Linted(lines, None)
    if not checker.compiled:
        return Linted([*lines, Line("Error", "there is no policy in this text")], None)
    return Linted(lines or [Line("Plain", "lint finds nothing")], checker.compiled)


def compare(shown: ShownPods, edited: Sequence[CompiledPolicy]) -> list[Line]:
    """Return how the placement of the pods differs if these policies are applied to the cluster."""
    cluster, names = shown.cluster, {policy.name for policy in edited}
    before = {policy.name for policy in shown.policies}
    every = [*(policy for policy in shown.policies if policy.name not in names), *edited]
    after = with_policies(cluster, every)
    [version] = after.versions
    in_shadow = ShadowSummary()
    created = CreatedPods(cluster.snapshot, version.published)
    found = [*_changes(shown, created, after.simulation(), after.shadow(), in_shadow)]
    lines = [Line("Plain", f"{name} is a new policy") for name in sorted(names - before)]
    lines += [
        Line("Plain", f"{policy.name}: its rules in shadow decide nothing") for policy in with_rules_in_shadow(edited)
    ]
    of_shadow = after.versions[0].shadow
    unevaluated = () if of_shadow is None else notes_on_skipped(of_shadow.unevaluated, "in shadow, ")
    notes = [*dict.fromkeys([*unevaluated, *notes_on_skipped(version.skipped)])]
    if shown.left_out:
        notes.append(f"{pluralize(shown.left_out, 'more pod')} not compared here: `fairlead diff` compares all")
    strangers = sorted(
        {policy.scheduler_name for policy in edited} - {policy.scheduler_name for policy in shown.policies}
    )
    notes += [f"pods of {name}, which no policy names yet, are not compared here" for name in strangers]
    changes = [change for change in found if change is not None]
    text = [*diff_lines(changes, len(found), notes, in_shadow=summary_line(in_shadow), colour=False)]
    if len(text) > LINES_MAX:
        rest = len(text) - LINES_MAX
        text[LINES_MAX // 2 : len(text) - LINES_MAX // 2] = [
            f"... and {rest:,} more lines, which `fairlead diff` prints"
        ]
    return [*lines, *map(_line, text)]


def _changes(
    shown: ShownPods,
    created: CreatedPods,
    after: Simulation,
    shadow: ShadowSimulation | None,
    in_shadow: ShadowSummary,
) -> Iterator[PlacementChange | None]:
    """Yield for each pod how its placement differs, as if it were created now; None if it does not.

    What rules in shadow would change is counted in the summary.
    """
    before, cluster = shown.simulation, shown.cluster
    created_before = CreatedPods(cluster.snapshot, cluster.versions[0].published)
    for each in shown.pods:
        was, will = created_before.as_created(each.pod), created.as_created(each.pod)
        is_judged = was is each.pod and shown.explained.simulation_of(each.pod.scheduler) is before
        judged = replace(each.judged, unanswered=False) if is_judged else judge_pod(before, was)
        then = judge_pod(after, will)
        if shadow is not None:
            in_shadow.add(shadow.judge(will, then))
        yield diff_placement(JudgedPod(before, was.raw, judged), JudgedPod(after, will.raw, then))


def _line(text: str) -> Line:
    if text.startswith(_WORSE):
        return Line("Worse", text)
    if text.startswith(_BETTER):
        return Line("Better", text)
    return Line("Plain" if text.startswith(("    ", "Not simulated", "Note:")) or not text else "Head", text)
