"""The checks of lint: from the bytes of files to all findings about the policies in them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.errors import FieldPath, render_path
from fairlead.api.names import KIND
from fairlead.api.parse import show_value
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cli.inputs.findings import Finding, LintedRule, LintReport, PolicyLocation, with_accepted
from fairlead.cli.yaml.plain_values import VALUES_MAX, find, text_at, to_data
from fairlead.cli.yaml.scalar_positions import cut_off
from fairlead.cli.yaml.source import BrokenError, SourceText, decode, refuse_unprintable, so_far
from fairlead.cli.yaml.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, documents
from fairlead.cooperative import Clock
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.entry_limits import EntryLimits
from fairlead.policy.compile.model import (
    FILTER_PREFIX,
    AnnotationRule,
    CompiledPolicy,
    ExpressionRule,
    FilterRule,
    GangRule,
    ScoreRule,
)
from fairlead.policy.compile.modes import undivided
from fairlead.policy.compile.policy_errors import Fault
from fairlead.policy.lint.acceptances import ACROSS_POLICIES, Acceptance
from fairlead.policy.lint.codes import LintCode
from fairlead.policy.lint.inspection import Warnings, inspect
from fairlead.policy.lint.policy_set_checks import policy_set_conflicts
from fairlead.policy.lint.rule_checks import why_on_engine
from fairlead.strategies.contract import Strategy
from fairlead.strategies.registry import installed, policy_with

if TYPE_CHECKING:
    from fairlead.render.operator_settings import OperatorSettings

Object = dict[str, Any]
_GROUP: Final = "fairlead.dev/"
_MISREAD_MAX: Final = 100  # as many as are said of fields
_NO_SUCH_FIELD: Final = "there is no such field"
_NAME = ("metadata", "name")
_CREATED: Final = ("metadata", "creationTimestamp")
_LATER: Final = "~"
"""Sorts after all times: a policy without one is not in a cluster yet."""
_UNKNOWN_AGE: Final = "in a cluster the oldest policies come first, and this file does not say how old this one is"


@dataclass(slots=True)
class CrossPolicyChecks:
    """Checks that span several policies, with the places of what they find in files."""

    _names: dict[str, dict[str, int]] = field(default_factory=dict)
    """By name and file: the line of the first policy with that name."""
    _places: list[tuple[PolicyLocation, CompiledPolicy]] = field(default_factory=list)

    def same_name(self, place: PolicyLocation) -> Iterator[Finding]:
        """Yield an error for a name used twice in a file, a warning for two files: often only one is applied."""
        if not place.name:
            return
        files = self._names.setdefault(place.name, {})
        line, _ = place.of(_NAME)
        if place.file in files:
            said = f"another policy has the name {show_value(place.name)}: {place.file}:{files[place.file]}"
            yield place.finding(_NAME, said, "rename one of them")
        elif files:
            file, there = next(iter(files.items()))
            said = f"another policy has the name {show_value(place.name)}: {file}:{there}"
            hint = "if both are applied, the later one replaces the other: rename one of them"
            yield place.finding(_NAME, said, hint, severity="warning", reason=LintCode.SAME_NAME.value)
        files.setdefault(place.file, line)

    def remember(self, place: PolicyLocation, compiled: CompiledPolicy) -> None:
        """Record a policy that compiles."""
        self._places.append((place, compiled))

    def beyond_limits(self, servers: Mapping[str, int] | None) -> Iterator[Finding]:
        """Yield an error for each policy whose measured entries are too many, with those of the older ones."""
        limits, is_unsure = EntryLimits(servers), False
        for created, place, compiled in sorted(
            ((text_at(place.root, *_CREATED) or _LATER, place, compiled) for place, compiled in self._places),
            key=lambda one: (one[0], one[2].order),
        ):
            if (fault := limits.take(compiled)) is not None:
                found = _fault(place, fault)
                yield replace(found, hint=f"{found.hint}; {_UNKNOWN_AGE}") if created == _LATER and is_unsure else found
            is_unsure = is_unsure or (created == _LATER and bool(compiled.data))

    def conflicts(self) -> Iterator[Finding]:
        """Yield a warning for each field of a policy that loses to another policy, with the place of that one."""
        places = {id(compiled): place for place, compiled in self._places}
        for one in policy_set_conflicts(compiled for _, compiled in self._places):
            winner = places[id(one.winner)]
            line, _ = winner.of(_NAME)
            said = f"{show_value(one.winner.name)} ({winner.file}:{line}) {one.message}"
            yield places[id(one.loser)].finding(
                one.path, said, one.hint, severity="warning", reason=LintCode.CONFLICT.value
            )


@dataclass(slots=True)
class Checker:
    """Linter of files, which also checks policies of several files against each other."""

    report: LintReport = field(default_factory=LintReport)
    compiled: list[CompiledPolicy] = field(default_factory=list)
    """The policies that compile, in reading order."""
    policies: list[tuple[PolicyLocation, Object]] = field(default_factory=list)
    """The valid policies, with their locations, as plain data."""
    clock: Clock = lambda: 0.0
    """Clock for the time that a policy takes to compile."""
    custom: Mapping[str, Strategy] = field(default_factory=dict)
    """Custom strategies."""
    errors_only: bool = False
    """True: warnings of single policies are left out, for callers who do not show them."""
    settings: "OperatorSettings | None" = None
    """The operator's settings, if they are known: they say which Prometheus servers and annotations may be named."""
    _across: CrossPolicyChecks = field(default_factory=CrossPolicyChecks)
    _acceptances: list[tuple[PolicyLocation, Acceptance]] = field(default_factory=list)
    """Acceptances of warnings that only all policies together show."""
    _files: dict[str, int] = field(default_factory=dict)
    _rules: CompileOptions = field(init=False)
    _model: type[SchedulerExtenderPolicy] = field(init=False)
    _warnings: Warnings | None = None

    def __post_init__(self) -> None:
        if not self.errors_only:
            from fairlead.policy.lint.policy_checks import warnings_steps

            self._warnings = warnings_steps
        strategies = {strategy.name: strategy for strategy in installed()}
        self._rules = CompileOptions(
            strategies, custom=self.custom, expression_cache={}, clock=self.clock, keeps_written=True
        )
        if (known := self.settings) is not None:
            servers = {one.name: one.max_entries for one in known.prometheus}
            self._rules = replace(self._rules, annotation_prefixes=known.annotation_prefixes, servers=servers)
        self._model = policy_with(strategies.values())

    def check(self, file: str, data: bytes) -> None:
        """Check a file and record its findings."""
        self._files.setdefault(file, len(self._files))
        try:
            source = decode(data)
        except BrokenError as broken:
            self._broken(file, so_far(data), broken)
            return
        try:
            refuse_unprintable(source)
            for document in documents(source):
                self._document(file, source, document)
        except BrokenError as broken:
            self._broken(file, source, broken)

    def refuse(self, file: str, message: str, hint: str = "") -> None:
        """Record why a file is not read."""
        self._files.setdefault(file, len(self._files))
        self.report.findings.append(Finding(file, 1, 1, "error", "", message, hint))

    def finish(self) -> LintReport:
        """Add the findings that span files, and return all findings in the order of the files."""
        found = [*self._across.beyond_limits(self._rules.servers), *self._across.conflicts()]
        self.report.findings = [*with_accepted([*self.report.findings, *found], self._acceptances)]
        self.report.findings.sort(key=lambda one: (self._files[one.file], one.line, one.column))
        return self.report

    def _broken(self, file: str, source: SourceText, broken: BrokenError) -> None:
        line, column = source.place(broken.index)
        text = source.line(line)
        shown_ = text if text.strip() else None
        finding = Finding(file, line, column, "error", "", broken.message, broken.hint, shown=shown_)
        self.report.findings.append(finding)

    def _document(self, file: str, source: SourceText, document: YamlNode) -> None:
        if document.size > VALUES_MAX:
            _, [fault] = to_data(document, source)
            self._broken(file, source, BrokenError(fault.index, fault.message, fault.hint))
        elif isinstance(document, YamlScalar) and not document.value:
            return  # an empty document between two `---` lines
        elif _is_list(document):
            _, items, _ = find(document, ("items",))
            for item in items.items if isinstance(items, YamlSequence) else ():
                self._document(file, source, item)
        elif _is_ours(document):
            self._policy(PolicyLocation(file, source, document, text_at(document, "metadata", "name")))
        else:
            self.report.ignored += 1

    def _policy(self, place: PolicyLocation) -> None:
        report = self.report
        report.policies += 1
        data, misread = to_data(place.root, place.source)
        for fault in misread[:_MISREAD_MAX]:
            at = place.source.place(fault.index)
            report.findings.append(place.finding(fault.path, fault.message, fault.hint, at=at))
        if not misread:
            inspected = inspect(data, self._model, self._rules, self._warnings)
            report.findings += [_fault(place, found) for found in inspected.faults]
            report.findings += [place.warning(found) for found in inspected.warnings]
            across = (each for each in inspected.acceptances if each.reason in ACROSS_POLICIES)
            self._acceptances += [(place, each) for each in across]
            if inspected.policy is not None and isinstance(data, dict):
                self.policies.append((place, data))
            if inspected.policy is not None and inspected.compiled is not None:
                self.compiled.append(inspected.compiled)
                report.rules += _rules(place, inspected.policy, inspected.compiled)
                self._across.remember(place, inspected.compiled)
        report.findings += self._across.same_name(place)


def _fault(place: PolicyLocation, fault: Fault) -> Finding:
    error, at = fault.error, fault.at
    if at is not None and place.within(error.path, (at.line, at.column)):
        _, node, _ = find(place.root, error.path)
        hint = cut_off(place.source.text, node, at.message) if isinstance(node, YamlScalar) else ""
        return place.finding(error.path, at.message, hint or at.hint, part=(at.line, at.column))
    where = place.of(error.path, key=error.message == _NO_SUCH_FIELD)
    return place.finding(error.path, error.message, error.hint, at=where)


def _is_ours(document: YamlNode) -> bool:
    kind, version = text_at(document, "kind"), text_at(document, "apiVersion")
    return kind == KIND or version.startswith(_GROUP)


def _is_list(document: YamlNode) -> bool:
    if not isinstance(document, YamlMapping) or not text_at(document, "kind").endswith("List"):
        return False
    _, items, there = find(document, ("items",))
    return there and isinstance(items, YamlSequence)


def _rules(place: PolicyLocation, policy: SchedulerExtenderPolicy, compiled: CompiledPolicy) -> Iterator[LintedRule]:
    """Yield the rules of a policy, in shadow or not, in the order in which they were compiled."""
    compiled = undivided(compiled)
    annotations = policy.spec.binding.annotations if policy.spec.binding else ()
    gangs = policy.spec.binding.gang if policy.spec.binding else ()
    paths: list[FieldPath] = [
        *(("spec", "match", "conditions", at) for at in range(len(policy.spec.match.conditions))),
        *(("spec", "filters", at) for at in range(len(policy.spec.filters))),
        *(("spec", "binding", "deviceShare", at) for at in _shares_with_filters(policy, compiled)),
        *(("spec", "binding", "gang", at) for at in range(len(gangs))),
        *(("spec", "scores", at) for at in range(len(policy.spec.scores))),
        *(("spec", "preemption", "protect", at) for at in range(len(policy.spec.preemption.protect))),
        *(("spec", "binding", "annotations", at) for at in range(len(annotations))),
    ]
    made: tuple[ExpressionRule | FilterRule | GangRule | ScoreRule | AnnotationRule, ...] = (
        *compiled.match.conditions,
        *compiled.filters,
        *compiled.gangs,
        *compiled.scores,
        *compiled.protections,
        *compiled.annotations,
    )
    for path, rule, about in zip(paths, made, compiled.reports, strict=True):
        line, _ = place.of(path)
        why = why_on_engine(rule.expression) if rule.expression is not None else ""
        is_expression = rule.expression is not None
        where = render_path(path).removeprefix("spec.")
        name = about.name or where
        yield LintedRule(
            place.file, line, place.name, name, about.kind, about.evaluation, why, about.uses, is_expression
        )


def _shares_with_filters(policy: SchedulerExtenderPolicy, compiled: CompiledPolicy) -> Iterator[int]:
    """Yield the positions of the device shares that bring a filter of their own."""
    names = {rule.name for rule in compiled.filters}
    for at, entry in enumerate(policy.spec.binding.device_share if policy.spec.binding else ()):
        if f"{FILTER_PREFIX}{entry.name}" in names:
            yield at
