"""Loader of test suites from files and directories, with findings about what is wrong with them."""

import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.names import KIND
from fairlead.api.parse import parse_params
from fairlead.cli.console.output import with_progress
from fairlead.cli.inputs.checker import Checker
from fairlead.cli.inputs.files import BYTES_MAX, STDIN, File, Trees, files
from fairlead.cli.inputs.findings import Finding, PolicyLocation
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.cli.yaml.plain_values import to_data
from fairlead.cli.yaml.source import BrokenError, SourceText, decode, refuse_unprintable, so_far
from fairlead.cli.yaml.yaml_tree import YamlNode, YamlScalar, documents
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced
from fairlead.suites.node_values import entry_errors
from fairlead.suites.suite import Suite
from fairlead.suites.validate import field_errors

ENDINGS: Final = (".test.yaml", ".test.yml", ".test.json")
_OF_ALL: Final = (".yaml", ".yml", ".json")
_STDIN: Final = "<stdin>"
_NO_SUCH_FIELD: Final = "there is no such field"
_FAULTS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite with its compiled policies."""

    name: str
    file: str
    suite: Suite
    policies: Sequence[CompiledPolicy]
    place: PolicyLocation

    def finding(self, fault: FieldError) -> Finding:
        """Return a finding for an error in the suite, with its position in the file."""
        return _finding(self.place, fault)


@dataclass(slots=True)
class Suites:
    """Loader of suites, which reads each file of policies once."""

    loaded: list[LoadedSuite] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """Every file and directory that was read."""
    _checker: Checker = field(default_factory=lambda: Checker(custom=custom_strategies()))
    _policies: dict[str, list[CompiledPolicy] | None] = field(default_factory=dict)
    _trees: Trees = field(default_factory=lambda: Trees([]))

    def load(self, names: Sequence[str]) -> None:
        """Load the named files, and the suites in the named directories."""
        self.read += names
        self._trees = Trees(names)
        found = 0
        for file in with_progress("files", files([*names], trees=self._trees)):
            if file.empty or (file.name not in names and _is_other(file.name)):
                continue
            found += 1
            fault = _fault_of(file)
            if fault:
                self.findings.append(Finding(file.name, 1, 1, "error", "", fault))
            else:
                self._file(file.name, file.data)
        if not found:
            where = ", ".join(names)
            message = f"{where} has no suite: the names of suites end in {' or '.join(ENDINGS)}"
            self.findings.append(Finding(names[0], 1, 1, "error", "", message))
        self.findings += [one for one in self._checker.finish().findings if one.severity == "error"]

    def _file(self, file: str, data: bytes) -> None:
        try:
            source = decode(data)
        except BrokenError as broken:
            self._broken(file, so_far(data), broken)
            return
        count = 0
        try:
            refuse_unprintable(source)
            for document in documents(source):
                if not isinstance(document, YamlScalar) or document.value:
                    count += 1
                    self._document(file, source, document)
        except BrokenError as broken:
            self._broken(file, source, broken)
            return
        if not count:
            self.findings.append(Finding(file, 1, 1, "error", "", "the file is empty"))

    def _broken(self, file: str, source: SourceText, broken: BrokenError) -> None:
        line, column = source.place(broken.index)
        self.findings.append(Finding(file, line, column, "error", "", broken.message, broken.hint))

    def _document(self, file: str, source: SourceText, document: YamlNode) -> None:
        place = PolicyLocation(file, source, document, "")
        data, misread = to_data(document, source)
        for fault in misread[:_FAULTS_MAX]:
            at = source.place(fault.index)
            self.findings.append(place.finding(fault.path, fault.message, fault.hint, at=at))
        if misread:
            return
        if isinstance(data, dict) and data.get("kind") == KIND:
            hint = "list it under `policies` of a suite; `fairlead lint` checks policies"
            self.findings.append(_finding(place, FieldError(("kind",), "this is a policy, not a suite", hint)))
            return
        try:
            suite = parse_params(data, Suite)
        except InvalidObjectError as invalid:
            self.findings += [_finding(place, one) for one in invalid.errors]
            return
        wrong = [*field_errors(suite)][:_FAULTS_MAX]
        self.findings += [_finding(place, one) for one in wrong]
        policies = self._policies_of(suite, place)
        if policies is not None and not wrong:
            wrong = [*entry_errors(suite, policies)][:_FAULTS_MAX]
            self.findings += [_finding(place, one) for one in wrong]
        if policies is not None and not wrong:
            name = suite.name or _stem(file)
            self.loaded.append(LoadedSuite(name, file, suite, policies, place))

    def _policies_of(self, suite: Suite, place: PolicyLocation) -> list[CompiledPolicy] | None:
        """Return the policies of a suite; None if one of them cannot be read or does not compile."""
        folder = Path() if place.file == _STDIN else Path(place.file).parent
        found: dict[str, CompiledPolicy] = {}
        read: set[str] = set()
        complete = True
        for at, name in enumerate(suite.policies):
            path: FieldPath = ("policies", at)
            if not self._trees.fault(str(folder / name)):
                self.read.append(str(folder / name))
            is_empty = True
            for file in files([str(folder / name)], trees=self._trees):
                real = os.path.realpath(file.name)
                policies = [] if real in read else self._read_policies(file, place, path)
                is_empty = is_empty and policies == [] and real not in read
                read.add(real)
                complete = complete and policies is not None
                for policy in policies or ():
                    if policy.name in found:
                        self._wrong(place, path, f"another policy has the name {policy.name}", "test one of them")
                        complete = False
                    found[policy.name] = policy
            if is_empty:
                self._wrong(place, path, f"it contains no {KIND}", "list the files of the policies here")
                complete = False
        return [*found.values()] if complete else None

    def _read_policies(self, file: File, place: PolicyLocation, path: FieldPath) -> list[CompiledPolicy] | None:
        """Return the policies of a file; None if it has errors. Several suites share the result.

        All of their rules decide, in shadow or not, so that no change of a mode breaks a suite.
        """
        fault = file.empty or _fault_of(file)
        if fault:
            hint = "" if file.outside else "paths are relative to the directory of the suite"
            self._wrong(place, path, f"{file.name}: {fault}", hint)
            return None
        key = os.path.realpath(file.name)
        if key not in self._policies:
            checker = self._checker
            before, errors = len(checker.compiled), checker.report.count("error")
            checker.check(os.path.normpath(file.name), file.data)
            is_good = checker.report.count("error") == errors
            self._policies[key] = [as_enforced(one) for one in checker.compiled[before:]] if is_good else None
        return self._policies[key]

    def _wrong(self, place: PolicyLocation, path: FieldPath, message: str, hint: str) -> None:
        self.findings.append(_finding(place, FieldError(path, message, hint)))


def _finding(place: PolicyLocation, fault: FieldError) -> Finding:
    where = place.of(fault.path, key=fault.message == _NO_SUCH_FIELD)
    return place.finding(fault.path, fault.message, fault.hint, at=where)


def _fault_of(file: File) -> str:
    if file.unreadable:
        return f"cannot be read: {file.unreadable}"
    return f"is larger than {BYTES_MAX >> 20} MiB" if file.too_large else ""


def _is_other(name: str) -> bool:
    """Return whether a file in a directory is not a suite; an unreadable directory may contain some."""
    return name.lower().endswith(_OF_ALL) and not name.lower().endswith(ENDINGS)


def _stem(file: str) -> str:
    name = Path(file).name
    return next((name[: -len(one)] for one in ENDINGS if name.lower().endswith(one)), Path(name).stem)


def stamp(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the state of files for --watch, which polls: mounted directories send no file events."""
    return [*_stamps([name for name in names if name != STDIN])]


def _stamps(names: list[str]) -> Iterator[tuple[str, int]]:
    for file in files(names):  # they were read before
        yield file.name, hash((file.data, file.unreadable))
