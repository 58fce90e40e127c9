"""What the operator asks to see that it is answered: rules that cannot decide about no pod are no news."""

from collections.abc import Callable

import pytest

from fairlead.pki.identities import NO_POD
from fairlead.webhook.extender.call import Reply
from support.policy import node, policy
from support.webhook import Asking, body

RAISES = {"name": "c", "expression": "pod.metadata.labels['none'] == 'x'"}
ODD = policy("p", match={"conditions": [RAISES]}, filters={"f": "true"}, scores={"s": "1.0"})
CALLS: dict[str, Callable[[Asking, str], Reply]] = {
    "filter": lambda asking, name: asking.filter(body([], pod={"name": name})),
    "prioritize": lambda asking, name: asking.prioritize(body([], pod={"name": name})),
    "preempt": lambda asking, name: asking.preempt(body(victims={}, pod={"name": name})),
}


@pytest.mark.parametrize(("name", "counted"), [(NO_POD, 0), ("web-1", 1)])
@pytest.mark.parametrize("verb", CALLS)
def test_nothing_is_counted_of_a_pod_that_there_is_not(verb: str, name: str, counted: int) -> None:
    asking = Asking([ODD], [node("a")])
    assert CALLS[verb](asking, name).status == 200
    assert len(asking.tally.drain()) == counted
