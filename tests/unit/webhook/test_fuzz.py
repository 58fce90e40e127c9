"""Broken requests: the short run, and that it would find what it is there to find."""

import gc
import sys
from random import Random

import pytest

from fairlead.webhook.extender import circuit_breaker, requests, verbs
from fairlead.webhook.extender.call import Outcome, VerbReply
from fuzz.against import Broken, Fuzz, check
from fuzz.reached import reached
from fuzz.seeds import seeds
from support.webhook import body

REQUESTS = 20_000
TRACED = 4_000


def test_there_are_enough_seeds() -> None:
    assert len(seeds()) >= 200


def test_no_request_breaks_the_webhook_or_stays_in_memory() -> None:
    fuzz = Fuzz(Random("unit"))
    for seed in fuzz.seeds:
        fuzz.ask(seed.verb, seed.body)
    blocks = []
    for _ in range(2):
        for _ in range(REQUESTS // 2):
            fuzz.one()
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    assert blocks[1] < 1.1 * blocks[0]
    assert {*fuzz.answers} == {
        ("filter", 200),
        *((verb, status) for verb in ("prioritize", "preempt") for status in (200, 400, 503)),
        ("bind", 200),
    }


def test_the_seeds_and_their_mutations_reach_nearly_every_line() -> None:
    lines = reached(Fuzz(Random("lines")).one, TRACED, requests, verbs, circuit_breaker)
    assert lines.share >= 0.95, lines.missed


SOUND = b'{"Nodes":null,"NodeNames":%s,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"%s"}'
PASSED, FAILED = Outcome(verb="filter"), Outcome(verb="filter", result="error", error="x")
BROKEN: dict[str, VerbReply] = {
    "a name that nobody asked about": VerbReply(SOUND % (b'["z"]', b""), outcome=PASSED),
    "a name that is lost": VerbReply(SOUND % (b"[]", b""), outcome=PASSED),
    "no JSON": VerbReply(SOUND % (b'["a"', b""), outcome=PASSED),
    "a key that is missing": VerbReply(b'{"NodeNames":["a"]}', outcome=PASSED),
    "another status": VerbReply(SOUND % (b'["a"]', b""), 500, outcome=PASSED),
    "an error that is not told": VerbReply(SOUND % (b"null", b""), outcome=FAILED),
    "an error that is none": VerbReply(SOUND % (b"null", b"x"), outcome=PASSED),
    "an error beside names": VerbReply(SOUND % (b'["a"]', b"x"), outcome=FAILED),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_answer_is_found(case: str) -> None:
    check("filter", body(["a"]), VerbReply(SOUND % (b'["a"]', b""), outcome=PASSED))
    with pytest.raises(Exception, match=r".") as found:
        check("filter", body(["a"]), BROKEN[case])
    assert not isinstance(found.value, KeyError)


def test_an_exception_is_found_with_the_request_that_raised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "decode_filter_args", lambda *_: 1 // 0)
    fuzz = Fuzz(Random(0))
    with pytest.raises(Broken, match=r"ZeroDivisionError[^\n]*\nb'\{\"Pod\""):
        fuzz.ask("filter", body(["a"]))
