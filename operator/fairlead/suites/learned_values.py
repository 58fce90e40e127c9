"""Learned state that people write, as `learned: {RULE: ...}` of a suite or of a file: outcomes of pods, or requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.learned.content import encode_demands, encode_pairs
from fairlead.learned.demands import Arrival, amount
from fairlead.learned.pair import OutcomeSums, node_key
from fairlead.learned.pairs import Key, Meaning, shard_of
from fairlead.learned.published import LearningRule, config_map, names_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.rule_notes import RuleKey
from fairlead.strategies.reads import DemandsRead, OutcomesRead
from fairlead.suites.suite import GivenDemands, LearnedOfRule, LearnedPair, Object, Suite

_ROUNDING: Final = 1e-6
_PAIRS_FORM: Final = "write a list of {type, node, value, count}, as it learns outcomes of pods"
_DEMANDS_FORM: Final = "write {demands: [{cpu: 500m, copies: 90}]}, as it learns requests of pods"
_NAMES_MAX: Final = 10

GivenState: TypeAlias = tuple[FieldPath, LearnedOfRule]
"""Path at which it is written, and what a rule has learned."""


class LearnsFrom(NamedTuple):
    """Rule of a policy, with what it learns."""

    policy: CompiledPolicy
    name: str
    read: OutcomesRead | DemandsRead

    @property
    def key(self) -> RuleKey:
        """Return the names of its policy and of itself."""
        return self.policy.name, self.name


class GivenToRule(NamedTuple):
    """Learned state that is written for a rule: for each version of its policy, if there are several."""

    path: FieldPath
    learned: LearnedOfRule
    rules: Sequence[LearnsFrom]


def learned_by_rule(suite: Suite, at: int) -> dict[str, GivenState]:
    """Return what rules have learned in a case, with its path: that of the case, else that of the suite."""
    found: dict[str, GivenState] = {}
    for path, learned in (((), suite.learned), (("cases", at), suite.cases[at].learned)):
        found |= {rule: ((*path, "learned", rule), one) for rule, one in learned.items()}
    return found


def rules_that_learn(policies: Iterable[CompiledPolicy]) -> list[LearnsFrom]:
    """Return the rules that learn."""
    found = list[LearnsFrom]()
    for policy in policies:
        found += [LearnsFrom(policy, name, read) for name, read in policy.learning]
        found += [LearnsFrom(policy, name, read) for name, read in policy.demanding]
    return found


def given_to_rules(
    learned: Mapping[str, GivenState], policies: Iterable[CompiledPolicy], whose: str = "policy of this suite"
) -> dict[RuleKey, GivenToRule]:
    """Return what is written for each rule, of several places the last one. Raises InvalidObjectError."""
    rules, found = rules_that_learn(policies), dict[RuleKey, GivenToRule]()
    for name, (path, one) in learned.items():
        meant = _named(name, path, rules, whose)
        key = meant[0].key
        if key in found and found[key].path[:-1] == path[:-1]:
            _fail(path, f"is the rule {found[key].path[-1]}, which is there already", "keep one of them")
        found[key] = GivenToRule(path, one, meant)
    return found


def config_maps_of(
    states: Iterable[GivenToRule], uids: Mapping[str, str], at: int, where: str = "in this case"
) -> Iterator[Object]:
    """Yield the ConfigMaps that would say what is written, as of a time in seconds. Raises InvalidObjectError.

    `uids` are those of the nodes, by name.
    """
    for path, learned, rules in states:
        written = set[tuple[str, str, str]]()
        samples = max((one.read.samples for one in rules if isinstance(one.read, DemandsRead)), default=0)
        for policy, name, read in rules:
            rule = LearningRule(policy.name, policy.uid, name, read.meaning)
            if rule.identity in written:  # versions of a policy that differ in something else read the same
                continue
            written.add(rule.identity)
            if isinstance(read, OutcomesRead):
                if isinstance(learned, GivenDemands):
                    _fail(path, f"the rule {name} learns no requests", _PAIRS_FORM)
                yield from _outcomes(rule, learned, read, uids, at, path, where)
            else:
                if not isinstance(learned, GivenDemands):
                    _fail(path, f"the rule {name} learns no outcomes", _DEMANDS_FORM)
                demands = dict(_demands(learned, read, samples, (*path, "demands")))
                yield config_map(rule, names_of(rule, 0)[1], encode_demands(demands, samples).data)


def _named(name: str, path: FieldPath, rules: Sequence[LearnsFrom], whose: str) -> list[LearnsFrom]:
    """Return the rule that is called so, of each version of its policy."""
    meant = [one for one in rules if name in (one.name, "/".join(one.key))]
    if not meant:
        names = ["/".join(one.key) if "/" in name else one.name for one in rules]
        _fail(path, f"no {whose} has a rule {name!r} that learns", _meant(name, names))
    if several := sorted({"/".join(one.key) for one in meant})[1:]:
        first = "/".join(min(one.key for one in meant))
        _fail(path, f"several policies have a rule {name}", f"write {' or '.join([first, *several])}")
    return meant


def _outcomes(
    rule: LearningRule,
    pairs: Sequence[LearnedPair],
    outcomes: OutcomesRead,
    uids: Mapping[str, str],
    at: int,
    path: FieldPath,
    where: str,
) -> Iterator[Object]:
    shards: dict[int, dict[Key, OutcomeSums]] = {}
    for index, pair in enumerate(pairs):
        if not pair.node:
            continue
        if pair.node not in uids:
            here = (*path, index, "node")
            _fail(here, f"there is no node {pair.node!r} {where}", _meant(pair.node, [*uids]))
        key = pair.type, node_key(uids[pair.node])
        shard = shards.setdefault(shard_of(key), {})
        if key in shard:
            _fail((*path, index), f"{pair.type} on {pair.node} is there already", "keep one of them")
        shard[key] = _sums(pair, outcomes, at, (*path, index))
    meaning = Meaning(outcomes.half_life_s, outcomes.prior, outcomes.types)
    for number, shard in shards.items():
        yield config_map(rule, names_of(rule, number)[1], encode_pairs(shard, meaning, at).data)


def _sums(pair: LearnedPair, outcomes: OutcomesRead, at: int, path: FieldPath) -> OutcomeSums:
    prior = outcomes.prior if pair.prior is None else pair.prior
    rewards, rounding = pair.value * (1 + pair.count) - prior, _ROUNDING * (1 + pair.count)
    if not -rounding <= rewards <= pair.count + rounding:
        low, high = (prior + one for one in (0.0, pair.count))
        least, most = (f"{one / (1 + pair.count):.3f}".rstrip("0").rstrip(".") for one in (low, high))
        hint = f"with this prior and count it is from {least} to {most}"
        _fail((*path, "value"), f"{pair.value:g} is no mean of rewards", hint)
    age_s = 0 if pair.age is None else pair.age.seconds
    return OutcomeSums(min(max(rewards, 0.0), pair.count), pair.count, max(0, at - age_s))


def _demands(
    learned: GivenDemands, read: DemandsRead, samples: int, path: FieldPath
) -> Iterator[tuple[Arrival, tuple[float, ...]]]:
    """Yield the newest pods. Their places stand for the times of their creation, which only their order matters of."""
    place = samples
    for index, demand in reversed([*enumerate(learned.demands)]):
        for name in demand.amounts:
            if name not in read.resources:
                near = closest_name(name, (*read.resources, "copies"))
                hint = f"did you mean {near}?" if near else f"they are {', '.join(read.resources)}, and copies"
                _fail((*path, index, name), "is none of the resources of the rule", hint)
        request = tuple(
            amount(demand.amounts[name].amount) if name in demand.amounts else 0.0 for name in read.resources
        )
        for _ in range(min(demand.copies, place)):
            yield (place, f"{place}"), request
            place -= 1


def _fail(path: FieldPath, message: str, hint: str) -> NoReturn:
    raise InvalidObjectError([FieldError(path, message, hint)])


def _meant(name: str, names: Iterable[str]) -> str:
    near = closest_name(name, names := [*dict.fromkeys(names)])
    if near:
        return f"did you mean {near}?"
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"there are {', '.join(names[:_NAMES_MAX])}{more}" if names else "there are none"
