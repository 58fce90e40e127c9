"""Warnings that the owner of a policy accepts, each with its reason, in an annotation of the policy.

    metadata:
      annotations:
        fairlead.dev/accept: |
          CountsPods/few-builds: a few more do no harm
          RunsOnEngine: only a few pods a day are matched

Each line names a warning by its reason, alone or with the rule that it is about, and says why it is meant. A line that
fits no warning is a warning itself, so that none outlives what it was written for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldPath
from fairlead.policy.lint.codes import NOTES, LintCode, LintWarning

ACCEPT: Final = "fairlead.dev/accept"
LENGTH_MAX: Final = 16_384
PATH: Final[FieldPath] = ("metadata", "annotations", ACCEPT)
ACROSS_POLICIES: Final = frozenset({LintCode.CONFLICT, LintCode.SAME_NAME})
"""Reasons of warnings that only those find who see all policies."""
_LINES_MAX: Final = 100
_FORM: Final = "write a line such as `CountsPods/few-pods: a few more do no harm`"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A warning that is accepted: its reason, the rule that it is about or "" for any, and why."""

    reason: LintCode
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.reason}/{self.rule}" if self.rule else str(self.reason)

    def covers(self, reason: str, rule: str) -> bool:
        """Report whether a warning is accepted."""
        return reason == self.reason and self.rule in ("", rule)


def read_acceptances(obj: object) -> tuple[list[Acceptance], list[LintWarning]]:
    """Return what the annotation of a policy accepts, and warnings about lines that accept nothing."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    written = annotations.get(ACCEPT) if isinstance(annotations, Mapping) else None
    found, wrong = list[Acceptance](), list[LintWarning]()
    if not isinstance(written, str):
        return found, wrong
    if len(written) > LENGTH_MAX:
        return found, [_unused(f"has more than {LENGTH_MAX:,} characters, and none of it is read", "shorten it")]
    for line in filter(None, map(str.strip, written.splitlines()[:_LINES_MAX])):
        what, _, why = line.partition(":")
        name, _, rule = what.partition("/")
        name, rule, why = name.strip(), rule.strip(), why.strip()
        if name == LintCode.UNUSED_ACCEPTANCE:
            wrong.append(_unused(f"{name} cannot be accepted", "remove the lines that accept nothing"))
        elif name not in _REASONS:
            near = closest_name(name, _REASONS)
            wrong.append(_unused(f"there is no warning {name[:_SHOWN]!r}", f"did you mean {near}?" if near else _FORM))
        elif LintCode(name) in NOTES:
            wrong.append(_unused(f"{name} is a note, and notes need not be accepted", "remove the line"))
        elif not why:
            wrong.append(_unused(f"the line about {what.strip()[:_SHOWN]} does not say why", _FORM))
        else:
            found.append(Acceptance(LintCode(name), rule, why))
    return found, wrong


_REASONS: Final = frozenset(LintCode) - {LintCode.UNUSED_ACCEPTANCE}
_SHOWN: Final = 64


def _unused(fault: str, hint: str) -> LintWarning:
    return LintWarning(LintCode.UNUSED_ACCEPTANCE, PATH, fault, hint)


def accepted(
    warnings: Iterable[LintWarning], acceptances: Iterable[Acceptance], obj: Mapping[str, Any]
) -> Iterator[LintWarning]:
    """Yield the warnings, those that are accepted with the reason, and one for each acceptance of no warning."""
    left, said = dict.fromkeys(acceptances, False), dict[str, list[str]]()
    for one in warnings:
        rule = rule_at(obj, one.path)
        found = next((each for each in left if each.covers(one.reason, rule)), None)
        if found is not None and one.severity == "warning":
            left[found] = True
            yield replace(one, accepted=found.why)
        else:
            if rule:
                said.setdefault(str(one.reason), []).append(rule)
            yield one
    for each, is_used in left.items():
        if not is_used and each.reason not in ACROSS_POLICIES:
            yield unused(each, said.get(each.reason, ()))


def unused(acceptance: Acceptance, texts: Sequence[str] = ()) -> LintWarning:
    """Return the warning about an acceptance of a warning that there is not; `texts` has the rules that have one."""
    near = (closest_name(acceptance.rule, texts, cutoff=0.6) or (texts[0] if len(texts) == 1 else "")) if texts else ""
    hint = f"did you mean {acceptance.reason}/{near}?" if near else "remove the line"
    return _unused(f"{acceptance} is accepted, and there is no such warning", hint)


def rule_at(obj: Any, path: FieldPath) -> str:
    """Return the name of the rule or entry that a field belongs to; "" if it belongs to none."""
    name = ""
    for step in path:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(step, int) and isinstance(obj, Mapping):
            name = str(obj.get("name") or obj.get("key") or "")
    return name
