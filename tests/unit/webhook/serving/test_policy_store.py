"""Which generation of each policy serves, whatever was written meanwhile."""

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.api.params import Params
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.strategies.contract import Strategy, Use
from fairlead.webhook.serving.policy_entry import PolicyEntry
from fairlead.webhook.serving.policy_status import CompiledGeneration
from fairlead.webhook.serving.policy_store import PolicyStore
from support.policy import MODEL, NOW, Evaluation, node, obj, pod
from support.policy.building import INSTALLED
from support.webhook.policy_stores import put as put_all

GOOD = "node.metadata.name == 'a'"
OTHER = "node.metadata.name == 'b'"
BAD = "node.metadata.nam == 'a'"


def policies(**more: Any) -> PolicyStore:
    return PolicyStore(MODEL, CompileOptions(INSTALLED), **more)


def put(all_: PolicyStore, expression: str, generation: int = 1, uid: str = "u1", **spec: Any) -> None:
    put_all(all_, obj("p", generation=generation, uid=uid, filters={"f": expression}, **spec))


def said(all_: PolicyStore) -> str:
    return str(all_.states["p"]).partition(": spec")[0]


def passed(all_: PolicyStore) -> list[str]:
    cluster = Evaluation(all_.serving.policies, [node("a"), node("b")])
    return list(cluster.filter(pod(), now=NOW).passed)


def test_what_compiles_serves() -> None:
    all_ = policies()
    put(all_, GOOD)
    assert (said(all_), passed(all_)) == ("p: generation 1 serves", ["a"])
    put(all_, OTHER, 2)
    assert (said(all_), passed(all_)) == ("p: generation 2 serves", ["b"])


def test_what_was_changed_and_changed_back_is_another_generation() -> None:
    """Others may have seen what was in between, or begin now: all are to be of one set."""
    all_ = policies()
    put(all_, GOOD)
    before = all_.serving.generation
    put(all_, GOOD, 3)
    assert (said(all_), all_.serving.generation != before) == ("p: generation 3 serves", True)


def test_what_does_not_compile_never_replaces_what_serves() -> None:
    all_ = policies()
    put(all_, GOOD)
    before = all_.serving.generation
    put(all_, BAD, 2)
    assert said(all_) == "p: generation 2 does not compile, generation 1 serves"
    assert "did you mean `name`" in str(all_.states["p"])
    assert (passed(all_), all_.serving.generation) == (["a"], before)
    put(all_, OTHER, 3)
    assert (said(all_), passed(all_)) == ("p: generation 3 serves", ["b"])


def test_without_a_good_generation_its_pods_are_treated_by_its_failure_policy() -> None:
    all_ = policies()
    put(all_, BAD)
    assert said(all_) == "p: generation 1 does not compile, its failurePolicy decides for its pods"
    assert passed(all_) == []
    put(all_, BAD, 2, failurePolicy="Ignore")
    assert passed(all_) == ["a", "b"]
    all_.put({"metadata": {"name": "q"}, "spec": "nonsense"})
    finished(all_)
    assert all_.states["q"].serving is None


def test_a_file_that_still_does_not_compile_is_another_set_all_the_same() -> None:
    all_ = policies()
    generations = []
    for policy in ("Fail", "Ignore"):
        all_.put({"metadata": {"name": "p"}, "spec": {"failurePolicy": policy, "filters": 5}})
        assert list(all_.compile_pending()) is not None
        generations.append((all_.serving.generation, all_.states["p"].generation))
    assert len({*generations}) == 2
    assert all(generation for pair in generations for generation in pair)


def kept(expression: str, uid: str = "u1") -> Mapping[tuple[str, str], CompiledGeneration]:
    return {("p", uid): CompiledGeneration("p", uid, "1", obj("p", uid=uid, filters={"f": expression}))}


def test_a_compiler_that_fails_is_like_a_policy_that_does_not_compile(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: object) -> Any:
        raise RuntimeError("a slip of ours")

    ready = Strategy(name="nodeReadiness", filter=Use(Params, fails))
    all_ = PolicyStore(MODEL, CompileOptions({ready.name: ready}))
    odd: Any = {"nodeReadiness": {"labels": [{"key": "gpu"}]}}
    all_.put(obj("q", filters={"f": "true"}))
    put(all_, odd)
    why = "internal error, see the log: RuntimeError: a slip of ours"
    assert str(all_.states["p"]).endswith(f"does not compile, its failurePolicy decides for its pods: {why}")
    assert (all_.states["p"].reason, all_.states["q"].serving, passed(all_)) == ("InternalError", "1", [])
    put(all_, GOOD, 2)
    caplog.clear()
    put(all_, odd, 3)
    put(all_, odd, 3)
    assert str(all_.states["p"]) == f"p: generation 3 does not compile, generation 2 serves: {why}"
    assert (all_.states["p"].reason, passed(all_)) == ("InternalError", ["a"])
    (line,) = caplog.records
    assert line.exc_info is not None


def test_the_first_policy_of_all_compiles_and_is_none() -> None:
    all_ = policies()
    all_.warm()
    assert (all_.states, all_.waits, all_.serving.policies) == ({}, False, ())


def test_after_a_restart_the_kept_generation_serves() -> None:
    all_ = policies(last_good=kept(GOOD))
    put(all_, BAD, 2)
    assert (said(all_), passed(all_)) == ("p: generation 2 does not compile, generation 1 serves", ["a"])


def test_what_was_kept_of_another_policy_of_that_name_or_is_not_understood_any_more_does_not_serve() -> None:
    for found in (kept(GOOD, uid="u0"), kept(BAD)):
        all_ = policies(last_good=found)
        put(all_, BAD, 2)
        assert all_.states["p"].serving is None


def test_a_policy_made_anew_does_not_inherit() -> None:
    all_ = policies()
    put(all_, GOOD)
    put(all_, BAD, 1, uid="u2")
    assert all_.states["p"].serving is None


def test_what_was_replaced_goes_without_the_collector() -> None:
    """Which passes over all that has been there for long."""
    all_ = policies()
    put(all_, GOOD)
    (rule,) = all_.serving.policies[0].filters
    assert rule.expression is not None
    made = weakref.ref(rule.expression._program._optimistic)
    gc.disable()
    try:
        del rule
        put(all_, OTHER, 2)
        assert made() is None
    finally:
        gc.enable()


def test_every_good_generation_and_every_policy_that_went_is_told() -> None:
    told: list[str] = []
    all_ = policies(on_good=lambda one: told.append(one.generation), on_removed=told.append)
    put(all_, GOOD)
    put(all_, BAD, 2)
    put(all_, OTHER, 3)
    all_.put(obj("p", generation=3, uid="u1", filters={"f": OTHER}) | {"status": {"x": 1}})
    assert not all_.waits
    all_.remove("p")
    assert all_.waits
    assert list(all_.compile_pending()) == []
    assert (told, all_.serving.policies, dict(all_.states)) == (["1", "3", "p"], (), {})


def test_what_comes_while_others_are_compiled_is_compiled_too() -> None:
    all_ = policies()
    all_.put(obj("p", uid="u1", filters={"f": GOOD}))
    for at, _ in enumerate(all_.compile_pending()):
        if at == 0:
            all_.put(obj("p", generation=2, uid="u1", filters={"f": OTHER}))
    assert passed(all_) == ["b"]


class Clock:
    """Goes on by what was told each time that somebody looks."""

    def __init__(self) -> None:
        self.now = self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def finished(all_: PolicyStore) -> int:
    """The stretches that were left."""
    return sum(1 for _ in all_.compile_pending())


def test_what_takes_too_long_is_said_and_not_tried_again_until_it_is_another() -> None:
    clock = Clock()
    all_ = PolicyStore(MODEL, CompileOptions(INSTALLED, clock=clock))
    clock.step = 1.0
    put(all_, GOOD)
    state = all_.states["p"]
    assert (state.serving, state.reason, passed(all_)) == (None, "NothingServes", [])
    assert "takes too long to compile: a policy may take 2 s of a processor" in state.message
    clock.step = 0.0
    put(all_, GOOD)
    all_.set_compile_options(CompileOptions(INSTALLED, ("example.com/",), clock=clock))
    assert (all_.waits, finished(all_), all_.states["p"]) == (False, 0, state)
    put(all_, GOOD, 2)
    assert passed(all_) == ["a"]
    clock.step = 1.0
    put(all_, OTHER, 3)
    assert (all_.states["p"].reason, passed(all_)) == ("LastGoodServes", ["a"])


def named(name: str, expression: str, generation: int = 1) -> dict[str, Any]:
    return obj(name, generation=generation, uid=name, filters={"f": expression})


def good(name: str, expression: str) -> dict[tuple[str, str], CompiledGeneration]:
    return {(name, name): CompiledGeneration(name, name, "1", named(name, expression))}


def test_what_was_good_serves_before_anything_else_is_looked_at() -> None:
    compiled = list[str]()
    all_ = policies(last_good=good("same", GOOD) | good("other", GOOD), on_good=lambda one: compiled.append(one.name))
    for one in (named("new", GOOD), named("poison", OTHER), named("same", GOOD), named("other", OTHER, 2)):
        all_.put(one)
    steps = all_.compile_pending()
    while not all_.serving.policies:
        next(steps)
    assert compiled == ["same"], "once, though it is both what was good and what there is now"
    serving = {one.name: (one.generation, one.placeholder) for one in all_.serving.policies}
    yet = ("1", "NotCompiledYet")
    assert serving == {"same": ("1", ""), "other": ("1", ""), "new": yet, "poison": yet}
    assert [*all_.states] == ["same"]
    assert passed(all_) == [], "what is not compiled yet has its failure policy"
    for _ in steps:
        pass
    assert {one.name: one.generation for one in all_.serving.policies} == {
        "same": "1",
        "other": "2",
        "new": "1",
        "poison": "1",
    }
    assert sorted(compiled) == ["new", "other", "poison", "same"]


def test_others_do_not_wait_for_a_policy_that_is_long_to_compile() -> None:
    long = " || ".join(f"node.metadata.labels['k{at}'] == 'a'" for at in range(100))
    all_ = policies()
    all_.put(obj("long", generation=1, uid="l", filters={f"f{at}": long.replace("k", f"k{at}x") for at in range(32)}))
    all_.put(named("short", GOOD))
    steps, served = all_.compile_pending(), 0
    for at, _ in enumerate(steps):
        if not served and any(one.generation == "1" for one in all_.serving.policies):
            served = at
    assert 0 < served < 250
    assert {one.name: one.generation for one in all_.serving.policies} == {"short": "1", "long": "1"}


def long(name: str, generation: int = 1) -> dict[str, Any]:
    """One whose rules are long, so that it takes many stretches."""
    text = " || ".join(f"node.metadata.labels['{name}{at}'] == 'a'" for at in range(50))
    return obj(name, generation=generation, uid=name, filters={f"f{at}": f"{text} || {at} > 1" for at in range(20)})


def test_what_comes_while_long_ones_are_compiled_does_not_wait_for_any_of_them() -> None:
    clock = Clock()
    clock.step = 1e-6
    all_ = PolicyStore(MODEL, CompileOptions(INSTALLED, clock=clock))
    for name in ("a", "b", "c"):
        all_.put(long(name))
    steps = all_.compile_pending()
    for _ in range(100):
        next(steps)
    all_.put(named("short", GOOD))
    needed = 0
    while not all_.states:
        next(steps)
        needed += 1
    assert [*all_.states] == ["short"]
    assert needed < 50
    for _ in steps:
        pass
    assert [*all_.states] == ["a", "b", "c", "short"]


def test_what_is_edited_again_and_again_does_not_begin_anew_each_time() -> None:
    clock = Clock()
    clock.step = 1e-6
    all_ = PolicyStore(MODEL, CompileOptions(INSTALLED, clock=clock))
    all_.put(long("a"))
    took = max(all_.compile_pending())
    all_.put(long("a", 2))
    steps = all_.compile_pending()
    assert next(steps) == pytest.approx(took / 2, rel=0.02)
    all_.put(named("short", GOOD))
    assert next(steps) < took / 10, "what is new is first"
    assert max(steps) == pytest.approx(took * 1.5, rel=0.02)


def test_a_fault_of_one_leaves_the_others_to_be_compiled_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(entry: PolicyEntry, compiled: CompiledPolicy, _obj: Any) -> None:
        monkeypatch.undo()
        raise RuntimeError("a slip of ours")

    all_ = policies()
    for name in ("a", "b", "c"):
        all_.put(named(name, GOOD))
    monkeypatch.setattr(PolicyEntry, "set_compiled", fails)
    with pytest.raises(RuntimeError, match="a slip of ours"):
        finished(all_)
    assert all_.waits
    finished(all_)
    assert {one.name: one.placeholder for one in all_.serving.policies} == {"a": "NotCompiledYet", "b": "", "c": ""}


def test_good_generations_serve_although_one_cannot_be_stored() -> None:
    stored = list[str]()

    def fails(one: CompiledGeneration) -> None:
        if one.name == "a" and one.generation == "1":
            raise RuntimeError("a slip of ours")
        stored.append(f"{one.name}/{one.generation}")

    all_ = policies(on_good=fails)
    for name in ("a", "b"):
        all_.put(named(name, GOOD))
    with pytest.raises(RuntimeError, match="a slip of ours"):
        finished(all_)
    assert {one.name: one.placeholder for one in all_.serving.policies} == {"a": "", "b": ""}
    all_.put(named("a", OTHER, 2))
    finished(all_)
    assert sorted(stored) == ["a/2", "b/1"]


def test_stored_generations_of_policies_without_an_object_serve_until_they_were_deleted() -> None:
    removed = list[str]()
    all_ = policies(last_good=good("gone", GOOD) | good("unread", GOOD), on_removed=removed.append)
    all_.put(named("there", GOOD))
    assert all_.restore_missing() == ["gone", "unread"]
    finished(all_)
    assert sorted(one.name for one in all_.serving.policies) == ["gone", "there", "unread"]
    all_.put(named("unread", GOOD))  # it can be read again, and says the same
    all_.remove("there")
    assert all_.forget_missing() == ["gone"]
    assert (all_.restore_missing(), all_.forget_missing(), removed) == ([], [], ["there", "gone"])
    finished(all_)
    assert [one.name for one in all_.serving.policies] == ["unread"]


def test_of_one_that_changes_only_what_it_is_now_is_compiled() -> None:
    all_ = policies()
    all_.put(long("a"))
    steps = all_.compile_pending()
    for generation in range(2, 6):
        for _ in range(20):
            next(steps)
        all_.put(long("a", generation))
    all_.put(named("gone", GOOD))
    next(steps)
    all_.remove("gone")
    for _ in steps:
        pass
    assert (all_.states["a"].serving, all_.changes) == ("5", 2), "one was compiled, and one went"


def test_an_object_of_any_shape_is_a_fault_of_its_own() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    all_ = policies()
    all_.put({"metadata": {"name": "deep", "uid": "d"}, "spec": {"filters": deep}})
    put(all_, GOOD)
    assert (all_.states["deep"].reason, all_.states["p"].reason) == ("NothingServes", "Compiled")
