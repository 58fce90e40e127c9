"""From the names of files and folders to suites that can be run, and everything that is wrong with the others."""

import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.parse import parse_params
from fairlead.cli.checks import Checker
from fairlead.cli.documents import Node, Scalar, documents
from fairlead.cli.files import BYTES_MAX, STDIN, File, files
from fairlead.cli.findings import Finding
from fairlead.cli.places import Place
from fairlead.cli.source import BrokenError, Source, decode, refuse_unprintable, so_far
from fairlead.cli.values import to_data
from fairlead.policy.compiled import CompiledPolicy
from fairlead.suites.fields import faults
from fairlead.suites.suite import Suite

ENDINGS: Final = (".test.yaml", ".test.yml", ".test.json")
_NO_SUCH_FIELD: Final = "there is no such field"
_FAULTS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Loaded:
    """A suite with its policies."""

    name: str
    file: str
    suite: Suite
    policies: Sequence[CompiledPolicy]
    place: Place

    def finding(self, fault: FieldError) -> Finding:
        """A fault with its place in the file."""
        return _finding(self.place, fault)


@dataclass(slots=True)
class Suites:
    """Reads suites, and each file of policies once."""

    loaded: list[Loaded] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """Every file and folder that something was read from."""
    _checker: Checker = field(default_factory=Checker)
    _policies: dict[str, list[CompiledPolicy] | None] = field(default_factory=dict)

    def load(self, names: Sequence[str]) -> None:
        """Read what is named, and of folders what is called like a suite."""
        self.read += names
        found = 0
        for file in files([*names]):
            if file.name not in names and not file.name.lower().endswith(ENDINGS) and file.name != "<stdin>":
                continue
            if file.empty:
                continue
            found += 1
            fault = _fault_of(file)
            if fault:
                self.findings.append(Finding(file.name, 1, 1, "error", "", fault))
            else:
                self._file(file.name, file.data)
        if not found:
            where = ", ".join(names)
            message = f"there is no suite in {where}: the names of suites end in {' or '.join(ENDINGS)}"
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
                if not isinstance(document, Scalar) or document.value:
                    count += 1
                    self._document(file, source, document)
        except BrokenError as broken:
            self._broken(file, source, broken)
            return
        if not count:
            self.findings.append(Finding(file, 1, 1, "error", "", "there is nothing in it"))

    def _broken(self, file: str, source: Source, broken: BrokenError) -> None:
        line, column = source.place(broken.index)
        self.findings.append(Finding(file, line, column, "error", "", broken.message, broken.hint))

    def _document(self, file: str, source: Source, document: Node) -> None:
        place = Place(file, source, document, "")
        data, misread = to_data(document, source)
        for fault in misread[:_FAULTS_MAX]:
            at = source.place(fault.index)
            self.findings.append(place.finding(fault.path, fault.message, fault.hint, at=at))
        if misread:
            return
        try:
            suite = parse_params(data, Suite)
        except InvalidObjectError as invalid:
            self.findings += [_finding(place, one) for one in invalid.errors]
            return
        wrong = [*faults(suite)][:_FAULTS_MAX]
        self.findings += [_finding(place, one) for one in wrong]
        policies = self._policies_of(suite, place)
        if policies is not None and not wrong:
            name = suite.name or _stem(file)
            self.loaded.append(Loaded(name, file, suite, policies, place))

    def _policies_of(self, suite: Suite, place: Place) -> list[CompiledPolicy] | None:
        """The policies of a suite; None if they cannot all be had."""
        folder = Path() if place.file == "<stdin>" else Path(place.file).parent
        found: list[CompiledPolicy] = []
        complete = True
        for at, name in enumerate(suite.policies):
            path: FieldPath = ("policies", at)
            read = self._read_policies(str(folder / name), place, path)
            complete = complete and read is not None
            for policy in read or ():
                if policy.name in [one.name for one in found]:
                    message = f"another policy is called {policy.name}"
                    self.findings.append(_finding(place, FieldError(path, message, "test one of them")))
                    complete = False
                found.append(policy)
        return found if complete else None

    def _read_policies(self, name: str, place: Place, path: FieldPath) -> list[CompiledPolicy] | None:
        """Those of a file or of a folder."""
        key = os.path.realpath(name)
        if key in self._policies:
            return self._policies[key]
        self.read.append(name)
        report = self._checker.report
        before, errors, policies = len(self._checker.compiled), report.count("error"), report.policies
        unread = False
        for file in files([name]):
            fault = file.empty or _fault_of(file)
            if fault:
                self.findings.append(_finding(place, FieldError(path, f"{file.name}: {fault}", _FROM_HERE)))
                unread = True
            else:
                self._checker.check(_short(file.name), file.data)
        if not unread and report.policies == policies:
            message = "there is no SchedulerExtenderPolicy in it"
            self.findings.append(_finding(place, FieldError(path, message, "name the files of the policies here")))
            unread = True
        bad = unread or report.count("error") > errors
        found = self._policies[key] = None if bad else self._checker.compiled[before:]
        return found


_FROM_HERE: Final = "files are named from the folder of the suite"


def _finding(place: Place, fault: FieldError) -> Finding:
    where = place.of(fault.path, key=fault.message == _NO_SUCH_FIELD)
    return place.finding(fault.path, fault.message, fault.hint, at=where)


def _fault_of(file: File) -> str:
    if file.unreadable:
        return f"cannot be read: {file.unreadable}"
    return f"is larger than {BYTES_MAX >> 20} MiB" if file.too_large else ""


def _stem(file: str) -> str:
    name = Path(file).name
    return next((name[: -len(one)] for one in ENDINGS if name.lower().endswith(one)), Path(name).stem)


def _short(name: str) -> str:
    return os.path.normpath(name)


def stamp(names: Sequence[str]) -> list[tuple[str, int]]:
    """What is in files and folders, so that a change can be told: folders that are mounted tell nobody."""
    return [*_stamps([name for name in names if name != STDIN])]


def _stamps(names: list[str]) -> Iterator[tuple[str, int]]:
    for file in files(names):
        yield file.name, hash((file.data, file.unreadable))
