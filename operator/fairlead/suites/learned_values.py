"""Learned state that a suite gives its rules, as `learned: {RULE: [{type, node, value, count}]}`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.learned.content import encode_pairs
from fairlead.learned.pair import OutcomeSums, node_key
from fairlead.learned.pairs import Key, Meaning, shard_of
from fairlead.learned.published import LearningRule, config_map, names_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.strategies.reads import OutcomesRead
from fairlead.suites.suite import LearnedPair, Object, Suite
from fairlead.time_units import SECOND_NS

_ROUNDING = 1e-6


def learned_by_rule(suite: Suite, at: int) -> dict[str, tuple[FieldPath, Sequence[LearnedPair]]]:
    """Return what rules have learned in a case, with its path: that of the case, else that of the suite."""
    found: dict[str, tuple[FieldPath, Sequence[LearnedPair]]] = {}
    for path, learned in (((), suite.learned), (("cases", at), suite.cases[at].learned)):
        found |= {rule: ((*path, "learned", rule), pairs) for rule, pairs in learned.items()}
    return found


def learned_state(
    learned: Mapping[str, tuple[FieldPath, Sequence[LearnedPair]]],
    policies: Sequence[CompiledPolicy],
    nodes: Sequence[Object],
    now: int,
) -> Iterator[Object]:
    """Yield the ConfigMaps that would say so. Raises InvalidObjectError."""
    rules = {name: (policy, outcomes) for policy in policies for name, outcomes in policy.learning}
    uids = {str(node["metadata"]["name"]): str(node["metadata"]["uid"]) for node in nodes}
    for name, (path, pairs) in learned.items():
        if name not in rules:
            _fail(path, f"no policy of this suite has a rule {name!r} that learns", _meant(name, [*rules]))
        policy, outcomes = rules[name]
        rule = LearningRule(policy.name, policy.uid, name, outcomes.meaning)
        shards: dict[int, dict[Key, OutcomeSums]] = {}
        for index, pair in enumerate(pairs):
            if pair.node not in uids:
                _fail(
                    (*path, index, "node"), f"there is no node {pair.node!r} in this case", _meant(pair.node, [*uids])
                )
            key = pair.type, node_key(uids[pair.node])
            shards.setdefault(shard_of(key), {})[key] = _sums(pair, outcomes, now, (*path, index))
        meaning = Meaning(outcomes.half_life_s, outcomes.prior, outcomes.types)
        for number, shard in shards.items():
            written = encode_pairs(shard, meaning, now // SECOND_NS)
            yield config_map(rule, names_of(rule, number)[0], written.data)


def _sums(pair: LearnedPair, outcomes: OutcomesRead, now: int, path: FieldPath) -> OutcomeSums:
    rewards = pair.value * (1 + pair.count) - outcomes.prior
    if not -_ROUNDING <= rewards <= pair.count + _ROUNDING:
        low, high = (outcomes.prior + one for one in (0.0, pair.count))
        least, most = (f"{one / (1 + pair.count):.3f}".rstrip("0").rstrip(".") for one in (low, high))
        hint = f"with this prior and count it is from {least} to {most}"
        _fail((*path, "value"), f"{pair.value:g} is no mean of rewards", hint)
    age_s = 0 if pair.age is None else pair.age.seconds
    at = max(0, now // SECOND_NS - age_s)
    return OutcomeSums(min(max(rewards, 0.0), pair.count), pair.count, at)


def _fail(path: FieldPath, message: str, hint: str) -> Any:
    raise InvalidObjectError([FieldError(path, message, hint)])


def _meant(name: str, names: Sequence[str]) -> str:
    near = closest_name(name, names)
    return f"did you mean {near}?" if near else f"there are {', '.join(names)}" if names else "there are none"
