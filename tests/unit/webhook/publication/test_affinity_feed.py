"""What is published now, since when, and what was published before, from objects as they come and go."""

from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.policy.affinity.published_policies import PublishedPolicy
from fairlead.time_units import SECOND_NS
from fairlead.webhook.publication.affinity_feed import AffinitySink, ListedAffinity
from support.published import SCHEDULER, part, requirement

A, B, C = (part("p", [requirement("pool", name)]) for name in "abc")
OTHER = part("q", [requirement("disk")])
NOW_S = 5_000


def obj(version: str, *parts: PublishedPolicy, at_s: int) -> ListedAffinity:
    written = f"1970-01-01T00:{at_s // 60:02}:{at_s % 60:02}Z"
    metadata = {"name": SCHEDULER, "creationTimestamp": "1970-01-01T00:00:01Z", "managedFields": [{"time": written}]}
    spec = {"schedulerName": SCHEDULER, "hash": version, "policies": [*parts]}
    return msgspec.json.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}), type=ListedAffinity)


Step = Callable[[AffinitySink], None]


def put(version: str, *parts: PublishedPolicy, at_s: int) -> Step:
    return lambda sink: sink.put(obj(version, *parts, at_s=at_s))


def gone(sink: AffinitySink) -> None:
    sink.remove(("", SCHEDULER))


STEPS: list[tuple[Step, tuple[str, float, list[PublishedPolicy]]]] = [
    (put("1", A, at_s=10), ("1", 10, [])),
    (put("1", {**A, "generation": 2}, at_s=20), ("1", 10, [])),
    (put("2", A, OTHER, at_s=30), ("2", 30, [])),
    (put("3", B, OTHER, at_s=40), ("3", 40, [A])),
    (put("4", B, at_s=50), ("4", 50, [A, OTHER])),
    (put("5", C, at_s=60), ("5", 60, [OTHER, B])),
    (gone, ("", NOW_S, [OTHER, C])),
    (put("5", C, at_s=70), ("5", 70, [OTHER, C])),
]


def test_what_is_published_now_and_was_before() -> None:
    sink = AffinitySink(lambda: NOW_S * SECOND_NS)
    for step, (version, since_s, before) in STEPS:
        step(sink)
        (found,) = sink.current.values()
        seen: Any = found.affinity["hash"], found.since_s, [_plain(one) for one in found.before.values()]
        assert seen == (version, since_s, [_plain(one) for one in before])


def _plain(one: PublishedPolicy) -> Any:
    return {**one, "generation": 0}


def test_an_unknown_object_that_goes_is_nothing() -> None:
    sink = AffinitySink(lambda: NOW_S * SECOND_NS)
    gone(sink)
    assert not sink.current


def test_only_so_much_of_what_was_published_is_kept() -> None:
    sink = AffinitySink(lambda: NOW_S * SECOND_NS)
    for number in range(100):
        sink.put(obj(str(number), part(f"p{number}", [requirement("pool", "a")]), at_s=number))
    (found,) = sink.current.values()
    assert [*found.before] == [f"p{number}" for number in range(35, 99)]
