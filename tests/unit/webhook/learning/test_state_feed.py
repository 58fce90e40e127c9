"""Published state: what each replica answers from, and what a learner knows of its versions."""

from typing import Any, Final

import msgspec
import pytest

from fairlead.learned.content import PAIRS
from fairlead.learned.learner import PairLearner
from fairlead.learned.pairs import Meaning
from fairlead.learned.published import LearningRule, config_map, names_of
from fairlead.policy.nodes.node_table import Nodes
from fairlead.webhook.learning.followed_rules import FollowedRule, followed_rules
from fairlead.webhook.learning.state_feed import StateSink, read_state
from support.policy import node, policy

TEXT: Final = '{"v":1,"types":[["ml/web","ml"]],"pairs":[["key",0,0.5,1.0,1800000000,[0,""],[]]]}'


class Replica:
    """A replica that follows a policy."""

    def __init__(self) -> None:
        self.nodes = Nodes()
        self.nodes.put(node("a"))
        self.sink = StateSink(self.nodes, lambda: 7)
        self.version = 0

    def follow(self, **params: Any) -> FollowedRule:
        (rule,) = followed_rules([policy(scores={"works": {"kubeRL": params}})])
        self.sink.set_rules([rule])
        return rule

    def put(self, rule: LearningRule, number: int = 3, text: str = TEXT, name: str = "") -> None:
        self.version += 1
        body = config_map(rule, name or names_of(rule, number)[0], {PAIRS: text})
        body["metadata"]["resourceVersion"] = str(self.version)
        self.sink.put(read_state(msgspec.json.encode(body)))

    def pairs(self, rule: FollowedRule) -> int:
        return self.nodes.learned.tables[rule.table].pairs


def test_what_is_published_is_what_a_rule_has_learned() -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule)
    assert (replica.pairs(rule), replica.sink.changed_at) == (1, {rule.table: 7})
    replica.sink.remove(("", names_of(rule.rule, 3)[0]))
    assert replica.pairs(rule) == 0


def test_what_was_published_before_a_rule_is_followed_is_there_then() -> None:
    replica = Replica()
    ((rule),) = followed_rules([policy(scores={"works": {"kubeRL": {}}})])
    replica.put(rule.rule)
    assert replica.pairs(replica.follow()) == 1


def test_a_rule_with_another_meaning_begins_anew_and_finds_its_state_when_the_edit_is_taken_back() -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule)
    edited = replica.follow(settle="1m")
    assert replica.pairs(edited) == 0
    assert replica.pairs(replica.follow()) == 1


def test_a_state_that_is_of_another_rule_now_is_no_longer_there() -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule)
    replica.put(LearningRule("p", "u-p", "works", "another meaning", 2))
    assert replica.pairs(rule) == 0


def test_a_copy_under_another_name_is_not_used() -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule, name="fairlead-learned-copy-3")
    assert replica.pairs(rule) == 0


@pytest.mark.parametrize("text", ["", "{", TEXT.replace('"v":1', '"v":2'), TEXT.replace('"key",0', '"key",1')])
def test_one_that_cannot_be_read_is_shown_until_it_can(text: str) -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule, text=text)
    assert not replica.nodes.learned.tables[rule.table].is_readable
    replica.put(rule.rule)
    assert replica.nodes.learned.tables[rule.table].is_readable


def test_a_learner_is_shown_each_version() -> None:
    replica = Replica()
    rule = replica.follow()
    replica.put(rule.rule)
    learner = PairLearner(rule.rule, Meaning(3600))
    replica.sink.show_all(learner.versions)
    assert [*learner.versions.known] == [3]
    replica.sink.versions = lambda: [learner.versions]
    replica.put(rule.rule, number=4)
    replica.sink.remove(("", names_of(rule.rule, 3)[0]))
    assert [*learner.versions.known] == [4]


def test_a_learner_does_not_write_what_belongs_to_no_rule() -> None:
    replica = Replica()
    rule = replica.follow()
    plain, longer = names_of(rule.rule, 3)
    for name in (plain, longer):
        body = {"metadata": {"name": name, "resourceVersion": "1", "labels": {"fairlead.dev/learned": ""}}}
        replica.sink.put(read_state(msgspec.json.encode(body)))
    learner = PairLearner(rule.rule, Meaning(3600))
    replica.sink.show_all(learner.versions)
    assert not learner.versions.may_write(3)
    assert learner.versions.may_write(4)
