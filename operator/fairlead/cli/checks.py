"""From the bytes of files to everything that is to be said about the policies in them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.api.errors import FieldError, FieldPath, render_path
from fairlead.api.names import KIND
from fairlead.api.parse import shown
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model
from fairlead.cel.diagnostics import Diagnostic
from fairlead.cli.documents import Mapping, Node, Scalar, Sequence, documents
from fairlead.cli.findings import Finding, Report, Rule, Severity
from fairlead.cli.positions import cut_off, index_in_file
from fairlead.cli.source import BrokenError, Source, decode, refuse_unprintable, so_far
from fairlead.cli.values import VALUES_MAX, find, text_at, to_data
from fairlead.policy.compile import Rules
from fairlead.policy.compiled import AnnotationRule, CompiledPolicy, ExpressionRule, FilterRule, ScoreRule
from fairlead.policy.inspect import inspect
from fairlead.policy.warnings import PolicyWarning, warnings, why_on_engine
from fairlead.strategies.registry import installed

_GROUP: Final = "fairlead.dev/"
_MISREAD_MAX: Final = 100  # as many as are said of fields
_NO_SUCH_FIELD: Final = "there is no such field"


@dataclass(frozen=True, slots=True)
class _Place:
    """A policy in a file."""

    file: str
    source: Source
    root: Node
    name: str


@dataclass(slots=True)
class Checker:
    """Looks at one file after the other, and remembers the names of policies."""

    report: Report = field(default_factory=Report)
    _names: dict[str, str] = field(default_factory=dict)
    _rules: Rules = field(init=False)
    _model: type[SchedulerExtenderPolicy] = field(init=False)

    def __post_init__(self) -> None:
        strategies = {strategy.name: strategy for strategy in installed()}
        self._rules = Rules(strategies)
        self._model = policy_model(
            {name: one.params for name, one in strategies.items() if one.filter},
            {name: one.params for name, one in strategies.items() if one.score},
        )

    def check(self, file: str, data: bytes) -> None:
        """Take down what is to be said about a file."""
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

    def _broken(self, file: str, source: Source, broken: BrokenError) -> None:
        line, column = source.place(broken.index)
        text = source.line(line)
        shown_ = text if text.strip() else None
        finding = Finding(file, line, column, "error", "", broken.message, broken.hint, shown=shown_)
        self.report.findings.append(finding)

    def _document(self, file: str, source: Source, document: Node) -> None:
        if document.size > VALUES_MAX:
            _, [fault] = to_data(document, source)
            self._broken(file, source, BrokenError(fault.index, fault.message, fault.hint))
        elif isinstance(document, Scalar) and not document.value:
            return  # nothing stands between two lines of dashes
        elif _is_list(document):
            _, items, _ = find(document, ("items",))
            for item in items.items if isinstance(items, Sequence) else ():
                self._document(file, source, item)
        elif _is_ours(document):
            self._policy(_Place(file, source, document, text_at(document, "metadata", "name")))
        else:
            self.report.ignored += 1

    def _policy(self, place: _Place) -> None:
        report = self.report
        report.policies += 1
        before = len(report.findings)
        data, misread = to_data(place.root, place.source)
        for fault in misread[:_MISREAD_MAX]:
            line, column = place.source.place(fault.index)
            self._add(place, fault.path, line, column, fault.message, fault.hint)
        if not misread:
            inspected = inspect(data, self._model, self._rules)
            for found in inspected.faults:
                self._in_expression(place, found.error, found.at)
            if inspected.policy is not None and inspected.compiled is not None:
                self._compiled(place, inspected.policy, inspected.compiled)
        self._is_alone(place)
        report.findings[before:] = sorted(report.findings[before:], key=lambda one: (one.line, one.column))

    def _compiled(self, place: _Place, policy: SchedulerExtenderPolicy, compiled: CompiledPolicy) -> None:
        for warning in warnings(compiled, policy):
            self._warning(place, warning)
        self.report.rules += _rules(place, policy, compiled)

    def _is_alone(self, place: _Place) -> None:
        """Two policies of one name: the later would replace the other when they are applied."""
        if not place.name:
            return
        line, column = _at(place, ("metadata", "name"))
        if place.name in self._names:
            fault = f"another policy is called {shown(place.name)}: {self._names[place.name]}"
            self._add(place, ("metadata", "name"), line, column, fault, "give one of them another name")
        self._names.setdefault(place.name, f"{place.file}:{line}")

    def _field_error(self, place: _Place, error: FieldError) -> None:
        line, column = _at(place, error.path, key=error.message == _NO_SUCH_FIELD)
        self._add(place, error.path, line, column, error.message, error.hint)

    def _in_expression(self, place: _Place, error: FieldError, at: Diagnostic | None) -> None:
        _, node, there = find(place.root, error.path)
        if at is None or not there or not isinstance(node, Scalar):
            self._field_error(place, error)
            return
        index = index_in_file(place.source.text, node, _offset(node.value, at))
        line, column = place.source.place(index)
        text = place.source.line(line)
        hint = cut_off(place.source.text, node, at.message) or at.hint
        self._add(place, error.path, line, column, at.message, hint, shown=text)

    def _warning(self, place: _Place, warning: PolicyWarning) -> None:
        line, column = _at(place, warning.path)
        severity: Severity = warning.severity
        made = self._add(place, warning.path, line, column, warning.message, warning.hint, severity)
        self.report.findings[-1] = replace(made, reason=str(warning.reason))

    def _add(
        self,
        place: _Place,
        path: FieldPath,
        line: int,
        column: int,
        message: str,
        hint: str,
        severity: Severity = "error",
        shown: str | None = None,
    ) -> Finding:
        finding = Finding(
            file=place.file,
            line=line,
            column=column,
            severity=severity,
            field=render_path(path),
            message=message,
            hint=hint,
            policy=place.name,
            rule=_rule(place.root, path),
            shown=shown,
        )
        self.report.findings.append(finding)
        return finding


def _is_ours(document: Node) -> bool:
    kind, version = text_at(document, "kind"), text_at(document, "apiVersion")
    return kind == KIND or version.startswith(_GROUP)


def _is_list(document: Node) -> bool:
    if not isinstance(document, Mapping) or not text_at(document, "kind").endswith("List"):
        return False
    _, items, there = find(document, ("items",))
    return there and isinstance(items, Sequence)


def _offset(value: str, at: Diagnostic) -> int:
    lines = value.split("\n")
    before = sum(len(line) + 1 for line in lines[: at.line - 1])
    return min(before + at.column - 1, len(value))


def _at(place: _Place, path: FieldPath, *, key: bool = False) -> tuple[int, int]:
    """Where a field stands: its value if it is a text, else its key, else what it is missing in."""
    name, node, there = find(place.root, path)
    if there and name is not None and (key or not isinstance(node, Scalar)):
        return place.source.place(name.start)
    return place.source.place(node.start)


def _rule(root: Node, path: FieldPath) -> str:
    """The name of the rule that a field belongs to."""
    for end in range(len(path), 0, -1):
        if isinstance(path[end - 1], int):
            return text_at(root, *path[:end], "name") or text_at(root, *path[:end], "key")
    return ""


def _rules(place: _Place, policy: SchedulerExtenderPolicy, compiled: CompiledPolicy) -> Iterator[Rule]:
    """The rules of a policy, in the order in which they were compiled."""
    annotations = policy.spec.binding.annotations if policy.spec.binding else ()
    paths: list[FieldPath] = [
        *(("spec", "match", "conditions", at) for at in range(len(policy.spec.match.conditions))),
        *(("spec", "filters", at) for at in range(len(policy.spec.filters))),
        *(("spec", "scores", at) for at in range(len(policy.spec.scores))),
        *(("spec", "preemption", "protect", at) for at in range(len(policy.spec.preemption.protect))),
        *(("spec", "binding", "annotations", at) for at in range(len(annotations))),
    ]
    made: tuple[ExpressionRule | FilterRule | ScoreRule | AnnotationRule, ...] = (
        *compiled.match.conditions,
        *compiled.filters,
        *compiled.scores,
        *compiled.protections,
        *compiled.annotations,
    )
    for path, rule, about in zip(paths, made, compiled.reports, strict=True):
        line, _ = _at(place, path)
        why = why_on_engine(rule.expression) if rule.expression is not None else ""
        is_expression = rule.expression is not None
        where = render_path(path).removeprefix("spec.")
        name = about.name or where
        yield Rule(place.file, line, place.name, name, about.kind, about.evaluation, why, about.uses, is_expression)
