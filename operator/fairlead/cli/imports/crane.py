"""Policy of crane-scheduler's plugin Dynamic, as rules about the annotations that crane writes. Pure.

crane scores a node by the weighted mean of what is left of each metric, less ten points for each unit of its hot
value. The same order comes from one score for each metric and one for hot spots, whose weight is the sum of theirs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Final

from pydantic import Field

from fairlead.api.params import Listed
from fairlead.api.parse import parse_params
from fairlead.api.values import QualifiedKey
from fairlead.cli.imports.draft import BURST, LOAD_WEIGHT, PolicyDraft, PolicyNames
from fairlead.cli.imports.foreign import (
    Foreign,
    ObjectHead,
    go_duration_s,
    join_names,
    one_error,
    plain_number,
)
from fairlead.time_units import duration_text

_EXTRA_S: Final = 300
"""Time that crane adds to the period of a metric before its value counts as too old."""
_AGE_MAX_S: Final = 168 * 3600
_WEIGHTS_MAX: Final = 100
"""Greatest sum of the weights: a sum of 100 keeps proportions to a percent."""
_RULES_MAX: Final = 16
_WINDOWS_MAX: Final = 4
_WITHIN_S: Final = (5, 24 * 3600)
_POINTS: Final = 10
_NO_DAEMONS: Final = "!pod.metadata.ownerReferences.exists(o, o.kind == 'DaemonSet')"
_Share = Annotated[float, Field(ge=0, le=1e9)]


class CranePeriod(Foreign):
    """Time between two writes of a metric."""

    name: QualifiedKey
    period: str


class CraneLimit(Foreign):
    """Limit of a metric, above which nodes are rejected."""

    name: QualifiedKey
    max_limit_pecent: _Share = 0.0


class CranePriority(Foreign):
    """Weight of a metric in the score."""

    name: QualifiedKey
    weight: _Share = 0.0


class CraneHotValue(Foreign):
    """Window in which placements are counted."""

    time_range: str
    count: Annotated[int, Field(ge=-(2**31), le=2**31)] = 0


class CraneSpec(Foreign):
    """Metrics with their periods, limits and weights."""

    sync_policy: Listed[CranePeriod] = ()
    predicate: Listed[CraneLimit] = ()
    priority: Listed[CranePriority] = ()
    hot_value: Listed[CraneHotValue] = ()


class CraneMetadata(Foreign):
    """Name, which the object need not have."""

    name: str = ""


class CranePolicy(ObjectHead):
    """The object."""

    metadata: CraneMetadata = CraneMetadata()
    spec: CraneSpec


def import_crane_policy(data: object, where: str, names: PolicyNames, schedulers: Sequence[str]) -> PolicyDraft:
    """Return the policy for a DynamicSchedulerPolicy. Raises InvalidObjectError.

    `schedulers` are the names of the schedulers that use it, as far as they are known.
    """
    found = parse_params(data, CranePolicy)
    draft = PolicyDraft(names.take(found.metadata.name or "crane"), [f"From crane's DynamicSchedulerPolicy ({where})."])
    reading = _Reading(draft, found.spec)
    reading.add_filter()
    reading.add_scores()
    reading.note_the_rest()
    if not draft.has_rules:
        draft.note("That leaves nothing to import.")
        return draft
    if len({*schedulers}) == 1:
        draft.scheduler(schedulers[0])
    else:
        draft.note(
            "The scheduler's name is in the scheduler's configuration: add it as schedulerName, or the policy is for "
            "fairlead. It cannot be changed later."
        )
    draft.comment(
        ("data",),
        "crane's annotator writes its local time, by default that of Asia/Shanghai, with a Z that means UTC. Set "
        "TZ=UTC for it: Fairlead takes a value from more than 5 minutes ahead for stale. maxAge is crane's: the period "
        "and 5 minutes.",
    )
    return draft


class _Reading:
    """Rules of one policy, from its parts."""

    def __init__(self, draft: PolicyDraft, spec: CraneSpec) -> None:
        self._draft = draft
        self._spec = spec
        self._periods: dict[str, int] = {}
        for at, one in enumerate(spec.sync_policy):
            period_s = go_duration_s(one.period, ("spec", "syncPolicy", at, "period"))
            if period_s and one.name not in self._periods:
                self._periods[one.name] = period_s
        self._used = set[str]()

    def add_filter(self) -> None:
        """Add the limits as filters, and what crane exempts from them."""
        rules: list[dict[str, Any]] = []
        comments: list[str] = []
        for one in self._spec.predicate:
            limit = plain_number(one.max_limit_pecent)
            if not one.max_limit_pecent:
                self._draft.note(f"Not imported: {one.name} of predicate, which the limit 0 switches off.")
            elif self._is_written(one.name, "predicate"):
                rule = {"value": self._value(one.name), "operator": "GreaterThan", "target": limit}
                rules += [] if rule in rules else [rule]
                if limit > 1:
                    comments.append(f"{one.name} is a share from 0 to 1, so {limit} never rejects a node.")
        for at in range(0, len(rules), _RULES_MAX):
            part = {"rejectWhen": "AnyOf", "rules": rules[at : at + _RULES_MAX]}
            self._draft.add("filters", "predicate", {"onError": "Pass", "telemetry": part})
        if not rules:
            return
        self._draft.comment(("filters", 0), "As in crane, a node without a value, or with an old one, passes.")
        for text in (*comments, BURST):
            self._draft.comment(("filters", 0), text)
        self._draft.match(conditions=[{"name": "no-daemon-pods", "expression": _NO_DAEMONS}])
        self._draft.comment(("match",), "crane exempts the pods of DaemonSets.")

    def add_scores(self) -> None:
        """Add a score for each metric, and one for hot spots that weighs as much as all of them."""
        counted = dict[str, Fraction]()
        for one in self._spec.priority:
            if one.weight:
                counted[one.name] = counted.get(one.name, Fraction()) + Fraction(str(one.weight))
            else:
                self._draft.note(f"Not imported: {one.name} of priority, which has the weight 0.")
        written = [name for name in counted if self._is_written(name, "priority")]
        if not written:
            if self._spec.hot_value:
                self._draft.note("Not imported: hotValue, which has no effect in crane without priority.")
            return
        # What is not written counts too: crane divides by all weights.
        whole, is_exact = whole_weights([*counted.values()])
        weights = dict(zip(counted, whole, strict=True))
        for name in written:
            rule = {"value": self._value(name), "prefer": "Lowest", "range": {"from": 0, "to": 1}}
            self._draft.add("scores", name, {"weight": weights[name], "telemetry": rule})
        self._add_hot_spots(sum(whole))
        if not is_exact:
            given = join_names(str(plain_number(float(one))) for one in counted.values())
            self._draft.comment(("scores", 0), f"The weights in crane are {given}; whole numbers here.")
        self._draft.comment(
            ("scores", 0),
            "The weights are in proportion to each other. The plugin gives a node at most 100 points times its own "
            "weight, and these rules 100 times their sum: divide them if the scheduler's plugins are to count more.",
        )

    def _add_hot_spots(self, weight: int) -> None:
        windows = []
        for at, one in enumerate(self._spec.hot_value):
            within_s = go_duration_s(one.time_range, ("spec", "hotValue", at, "timeRange"))
            low_s, high_s = _WITHIN_S
            bounded_s = min(max(within_s, low_s), high_s)
            if one.count <= 0:
                path = ("spec", "hotValue", at, "count")
                raise one_error(path, f"must be at least 1, not {one.count}", "crane divides by it")
            if bounded_s != within_s:
                said = f"timeRange {one.time_range} of hotValue is {duration_text(bounded_s)} here"
                self._draft.note(f"{said}: a window is from {low_s}s to {high_s // 3600}h long.")
            windows.append({"within": duration_text(bounded_s), "count": one.count, "points": _POINTS})
        for at in range(0, len(windows), _WINDOWS_MAX):
            part = {"windows": windows[at : at + _WINDOWS_MAX]}
            comment = "Placements are counted by Fairlead at once, in proportion; node_hot_value is not read."
            self._draft.add("scores", "hot-value", {"weight": weight, "hotSpot": part}, *[comment][at:])

    def note_the_rest(self) -> None:
        """Name what no rule reads."""
        unused = [one.name for one in self._spec.sync_policy if one.name not in self._used]
        if unused:
            self._draft.note(f"Not imported: {join_names(dict.fromkeys(unused))} of syncPolicy, which no rule reads.")
        parts = (*self._spec.sync_policy, *self._spec.predicate, *self._spec.priority, *self._spec.hot_value)
        unread = {name for part in (self._spec, *parts) for name in part.unread}
        if unread:
            self._draft.note(f"Not imported: the fields {join_names(sorted(unread))}, which crane does not know.")

    def _is_written(self, name: str, part: str) -> bool:
        if name in self._periods:
            return True
        self._draft.note(
            f"Not imported: {name} of {part}, which crane ignores because syncPolicy has no period for it."
        )
        return False

    def _value(self, name: str) -> str:
        self._used.add(name)
        age_s = self._periods[name] + _EXTRA_S
        comments = [f"{duration_text(age_s)} is longer than a maxAge can be."] if age_s > _AGE_MAX_S else []
        entry = {
            "nodeAnnotation": {"key": name, "format": "ValueCommaTime"},
            "maxAge": duration_text(min(age_s, _AGE_MAX_S)),
        }
        return self._draft.data(name, ("spec",), entry, *comments)


def whole_weights(weights: Sequence[Fraction]) -> tuple[list[int], bool]:
    """Return small whole weights in the same proportion, and whether the proportion is exact."""
    unit = Fraction(math.gcd(*(one.numerator for one in weights)), math.lcm(*(one.denominator for one in weights)))
    found = [int(one / unit) for one in weights]
    total = sum(found)
    if total > _WEIGHTS_MAX:
        return [max(1, round(Fraction(one * _WEIGHTS_MAX, total))) for one in found], False
    factor = -(-LOAD_WEIGHT // total)
    return [one * factor for one in found], True
