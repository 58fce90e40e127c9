"""Whatever nodes are called, they are told apart, and the reply is JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from support.policy import node, policy
from support.webhook import Asking, body, go

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=8)
RULES = [
    policy(
        filters={"gpu": {"expression": "node.metadata.labels[?'gpu'].hasValue()", "reason": "no GPU"}},
        scores={"s": "allocatable['cpu']"},
    )
]


@given(good=NAMES, bad=NAMES, unknown=NAMES, escaped=st.booleans(), spaced=st.booleans())
def test_whatever_names_are_made_of(
    good: list[str], bad: list[str], unknown: list[str], escaped: bool, spaced: bool
) -> None:
    bad = [name for name in bad if name not in good]
    unknown = [name for name in unknown if name not in good + bad]
    asking = Asking(
        RULES,
        [node(name, labels={"gpu": "x"}, cpu=90.0) for name in good] + [node(name, cpu=10.0) for name in bad],
        wants_all_reasons=True,
    )
    asked = [*bad, *unknown, *good]
    written = json.dumps(json.loads(body(asked)), ensure_ascii=escaped, separators=None if spaced else (",", ":"))
    sent = written.encode()
    reply = go.decode("filter", asking.filter(sent).body)
    assert reply["NodeNames"] == good
    reasons = dict.fromkeys(bad, "no GPU") | dict.fromkeys(unknown, "node is not known yet")
    assert reply["FailedAndUnresolvableNodes"] == (reasons or None)
    scores = {each["Host"]: each["Score"] for each in go.decode("prioritize", asking.prioritize(sent).body)}
    assert {name for name, score in scores.items() if score == 8} == ({*good} if bad else set())
    assert not {*bad} & {*scores}
    victims = json.dumps(json.loads(body(victims={name: [name] for name in asked})), ensure_ascii=escaped).encode()
    assert [*go.decode("preempt", asking.preempt(victims).body)["NodeNameToMetaVictims"]] == good
