"""One case from beginning to end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.offline.snapshot import SnapshotError
from fairlead.policy.compiled import CompiledPolicy
from fairlead.suites import names
from fairlead.suites.answer import Answer, Outcome
from fairlead.suites.compare import Difference, differences
from fairlead.suites.objects import Asked, asked
from fairlead.suites.suite import Case, Expect, Suite


class Ask(Protocol):
    """What tells what policies say of a pod."""

    def __call__(self, policies: Sequence[CompiledPolicy], about: Asked, expect: Expect, /) -> Answer:
        """Everything that a case may expect. Raises SnapshotError for an object that cannot be read."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case."""

    case: str
    differences: Sequence[Difference] = ()
    faults: Sequence[FieldError] = ()
    """What is wrong with the suite, so that nothing could be asked."""
    outcomes: Sequence[Outcome] = ()

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences and not self.faults


def run_case(suite: Suite, at: int, policies: Sequence[CompiledPolicy], ask: Ask) -> Result:
    """Ask, and compare."""
    case = suite.cases[at]
    try:
        about = asked(suite, at, _scheduler(case, at, policies))
    except InvalidObjectError as error:
        return Result(case.name, faults=error.errors)
    if faults := [*names.faults(case.expect, about, policies, ("cases", at, "expect"))]:
        return Result(case.name, faults=faults)
    try:
        answer = ask(policies, about, case.expect)
    except SnapshotError as error:
        return Result(case.name, faults=[FieldError(("cases", at), f"an object cannot be read: {error}")])
    return Result(case.name, differences(case.expect, answer), outcomes=answer.outcomes)


def _scheduler(case: Case, at: int, policies: Sequence[CompiledPolicy]) -> str:
    """The scheduler whose pods the policies are for; a pod may name another one."""
    found = sorted({policy.scheduler_name for policy in policies})
    said = (case.pod.get("spec") or {}).get("schedulerName")
    if len(found) > 1 and not said and "from" not in case.pod:
        message = f"is missing: the policies are of several schedulers, {', '.join(found)}"
        raise InvalidObjectError([FieldError(("cases", at, "pod", "spec", "schedulerName"), message, "say which")])
    return found[0] if found else ""
