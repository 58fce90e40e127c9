"""Documents of other projects in files, and the policies for them. Pure.

The order of the documents decides the order of the policies, and nothing else does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import KIND
from fairlead.cli.imports.crane import import_crane_policy
from fairlead.cli.imports.draft import PolicyDraft, PolicyNames
from fairlead.cli.imports.scheduler_config import REPLACING_EXTENDERS, import_scheduler_configuration
from fairlead.cli.imports.tas_policy import import_tas_policy
from fairlead.cli.inputs.files import BYTES_MAX, File
from fairlead.cli.inputs.findings import Finding, PolicyLocation
from fairlead.cli.yaml import yaml_tree as yaml_documents
from fairlead.cli.yaml.plain_values import VALUES_MAX, find, text_at, to_data
from fairlead.cli.yaml.source import BrokenError, SourceText, decode, refuse_unprintable, so_far

TAS: Final = "TASPolicy"
SCHEDULER: Final = "KubeSchedulerConfiguration"
CRANE: Final = "DynamicSchedulerPolicy"
_SCHEDULER_GROUP: Final = "kubescheduler.config.k8s.io"
_OLD_POLICY: Final = "Policy"
VERSIONS: Final = {
    TAS: ("telemetry.intel.com/v1alpha1",),
    SCHEDULER: tuple(f"{_SCHEDULER_GROUP}/{version}" for version in ("v1", "v1beta3", "v1beta2", "v1beta1")),
    CRANE: ("scheduler.policy.crane.io/v1alpha1", "policy.crane.io/v1alpha1"),
}
"""API versions by kind; what is read of them is the same in all versions of a kind."""
_MISREAD_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class _Document:
    kind: str
    place: PolicyLocation
    data: object

    @property
    def where(self) -> str:
        line, _ = self.place.of(())
        return f"{self.place.file}:{line}"


@dataclass(slots=True)
class _Importer:
    """Importer of one document after the other, with what they share."""

    has_crane_policy: bool
    names: PolicyNames = field(default_factory=PolicyNames)
    crane_schedulers: list[str] = field(default_factory=list)

    def drafts(self, document: _Document) -> list[PolicyDraft]:
        if document.kind == TAS:
            return [import_tas_policy(document.data, document.where, self.names)]
        if document.kind == CRANE:
            return [import_crane_policy(document.data, document.where, self.names, self.crane_schedulers)]
        found = import_scheduler_configuration(
            document.data, document.where, self.names, has_crane_policy=self.has_crane_policy
        )
        self.crane_schedulers += found.crane_schedulers
        return found.drafts


@dataclass(slots=True)
class ForeignDocuments:
    """Documents of known kinds, and findings about what is wrong with them."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Notes on documents of other kinds."""
    _documents: list[_Document] = field(default_factory=list)
    _files: dict[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True if there is no document of a known kind."""
        return not self._documents

    def read(self, file: File) -> bool:
        """Read a file; return whether it can be read."""
        self._files.setdefault(file.name, len(self._files))
        if file.unreadable or file.empty:
            self._say(file.name, f"cannot be read: {file.unreadable}" if file.unreadable else file.empty)
            return not file.unreadable
        if file.too_large:
            self._say(file.name, f"the file is larger than {BYTES_MAX >> 20} MiB", "split it")
            return False
        try:
            source = decode(file.data)
        except BrokenError as broken:
            self._broken(file.name, so_far(file.data), broken)
            return True
        try:
            refuse_unprintable(source)
            for document in yaml_documents.documents(source):
                self._document(file.name, source, document)
        except BrokenError as broken:
            self._broken(file.name, source, broken)
        return True

    def import_all(self) -> list[PolicyDraft]:
        """Return the policies. Adds findings for objects that cannot be imported, and puts all in order."""
        importer = _Importer(has_crane_policy=any(one.kind == CRANE for one in self._documents))
        drafts: dict[int, list[PolicyDraft]] = {}
        # Configurations come first: crane's policies are for the schedulers that they name.
        for at in sorted(range(len(self._documents)), key=lambda at: self._documents[at].kind != SCHEDULER):
            document = self._documents[at]
            try:
                drafts[at] = importer.drafts(document)
            except InvalidObjectError as invalid:
                self.findings += [_finding(document.place, one) for one in invalid.errors]
        self.findings.sort(key=lambda one: (self._files[one.file], one.line, one.column))
        return [draft for at in sorted(drafts) for draft in drafts[at]]

    def _document(self, file: str, source: SourceText, document: yaml_documents.YamlNode) -> None:
        if document.size > VALUES_MAX:
            _, [fault] = to_data(document, source)
            raise BrokenError(fault.index, fault.message, fault.hint)
        if isinstance(document, yaml_documents.YamlScalar) and not document.value:
            return  # an empty document between two `---` lines
        items = [*_items(document)]
        if items:
            for item in items:
                self._document(file, source, item)
            return
        kind = text_at(document, "kind")
        place = PolicyLocation(file, source, document, "")
        if kind not in VERSIONS:
            line, _ = place.of(())
            self.skipped.append(f"{file}:{line}: {_why_not(kind, text_at(document, 'apiVersion'))}")
            return
        data, misread = to_data(document, source)
        for fault in misread[:_MISREAD_MAX]:
            at = source.place(fault.index)
            self.findings.append(place.finding(fault.path, fault.message, fault.hint, at=at))
        versions = VERSIONS[kind]
        version = text_at(document, "apiVersion")
        if version not in versions:
            hint = f"write {' or '.join(versions)}"
            if version.startswith(f"{_SCHEDULER_GROUP}/v1alpha"):
                hint = f"write its plugins as profiles of {versions[0]}; for its extenders write {REPLACING_EXTENDERS}"
            self.findings.append(_finding(place, FieldError(("apiVersion",), f"{version!r} is not known", hint)))
        elif not misread:
            self._documents.append(_Document(kind, place, data))

    def _say(self, file: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(file, 1, 1, "error", "", message, hint))

    def _broken(self, file: str, source: SourceText, broken: BrokenError) -> None:
        line, column = source.place(broken.index)
        self.findings.append(Finding(file, line, column, "error", "", broken.message, broken.hint))


def _items(document: yaml_documents.YamlNode) -> Iterator[yaml_documents.YamlNode]:
    """Yield the items of a list, as `kubectl get` prints several objects."""
    if text_at(document, "kind").endswith("List"):
        _, items, is_there = find(document, ("items",))
        if is_there and isinstance(items, yaml_documents.YamlSequence):
            yield from items.items


def _why_not(kind: str, version: str) -> str:
    if kind == KIND:
        return f"is a {KIND} already"
    if kind == _OLD_POLICY and (version == "v1" or version.startswith(_SCHEDULER_GROUP)):
        return (
            f"is not imported: kube-scheduler reads no {kind} since 1.23; for its extenders write {REPLACING_EXTENDERS}"
        )
    hint = "; write the text that its data holds into a file of its own" if kind == "ConfigMap" else ""
    return f"is not imported: its kind is {kind or 'missing'}, not one of {', '.join(sorted(VERSIONS))}{hint}"


def _finding(place: PolicyLocation, fault: FieldError) -> Finding:
    return place.finding(fault.path, fault.message, fault.hint)
