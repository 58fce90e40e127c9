"""What commands are given in files: policies, and snapshots of clusters."""

from collections.abc import Sequence
from typing import Final

from fairlead.api.names import KIND
from fairlead.cli.checks import Checker
from fairlead.cli.failing import ERRORS, CommandError
from fairlead.cli.files import BYTES_MAX, File, files
from fairlead.cli.findings import Finding
from fairlead.offline.snapshot import Snapshot, SnapshotError
from fairlead.policy.reasons import Reason
from fairlead.policy.select import PolicySet, policy_set

SNAPSHOT_BYTES_MAX: Final = 4 << 30


def policies_of(names: Sequence[str]) -> PolicySet:
    """The policies in files and directories, compiled. Raises CommandError, with what lint says."""
    checker = Checker()
    for file in files(names):
        if not file.empty:
            checker.check(file.name, _data(file, BYTES_MAX))
    found = checker.finish()
    wrong = [one for one in found.findings if one.severity == "error" or one.reason == Reason.SAME_NAME]
    if wrong:
        more = f" (`fairlead lint` says {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CommandError(_said(wrong[0]) + more, ERRORS)
    if not checker.compiled:
        raise CommandError(f"no {KIND} found in {', '.join(names)}; name the files that hold policies")
    return policy_set(checker.compiled)


def snapshot_of(names: Sequence[str]) -> Snapshot:
    """The objects in files and directories. Raises CommandError."""
    snapshot = Snapshot()
    for file in files(names, SNAPSHOT_BYTES_MAX):
        if file.empty:
            raise CommandError(f"{file.name}: {file.empty}")
        try:
            snapshot.read(file.name, _data(file, SNAPSHOT_BYTES_MAX))
        except SnapshotError as error:
            raise CommandError(str(error)) from None
    return snapshot


def _data(file: File, bytes_max: int) -> bytes:
    if file.unreadable:
        raise CommandError(f"{file.name}: cannot be read: {file.unreadable}")
    if file.too_large:
        raise CommandError(f"{file.name}: the file is larger than {bytes_max >> 20} MiB; split it")
    return file.data


def _said(one: Finding) -> str:
    what = ": ".join(part for part in (one.field, one.message) if part)
    hint = one.hint.partition("\n")[0]
    return f"{one.file}:{one.line}:{one.column}: {what}" + (f"; {hint}" if hint else "")
