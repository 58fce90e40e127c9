"""The mode of the newest object decides what is applied, whatever else is written in it and whatever is waited for."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final

import pytest

from fairlead.control.decide.decide import ReconcileDecision
from fairlead.control.decide.desired import edit_id
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import StatusInputs, build_status
from fairlead.cooperative import Share
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.capability import Capability
from fairlead.webhook.serving.policy_status import CompiledGeneration
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader
from fairlead.webhook.serving.replica_report import ReportInputs, report
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals
from scripted.loop import in_loop
from support.policy import INSTALLED, MODEL, NOW, Evaluation, node, obj, pod

GOOD: Final = "node.metadata.name == 'a'"
BAD: Final = "node.metadata.nam == 'a'"


def store(**more: Any) -> PolicyStore:
    return PolicyStore(MODEL, CompileOptions(INSTALLED), **more)


def put(policies: PolicyStore, *generations: tuple[Any, dict[str, Any]], compiles: bool = True) -> None:
    for filters, spec in generations:
        number = int(policies._entries["p"].obj["metadata"]["generation"]) + 1 if "p" in policies._entries else 1
        policies.put(obj(generation=number, filters=filters, **spec))
        if compiles:
            for _ in policies.compile_pending():
                pass


def passed(policies: Iterable[CompiledPolicy]) -> list[str]:
    return list(Evaluation([*policies], [node("a"), node("b")]).filter(pod(), now=NOW).passed)


EDIT: Final[dict[str, tuple[list[tuple[Any, dict[str, Any]]], list[str], str]]] = {
    "an edit that does not compile, and is off": (
        [({"f": GOOD}, {}), ({"f": BAD}, {}), ({"f": BAD}, {"mode": "Disabled"})],
        ["a", "b"],
        "p: generation 3 does not compile, it is disabled, and no rule of it is applied",
    ),
    "off in the edit that breaks it": (
        [({"f": GOOD}, {}), ({"f": BAD}, {"mode": "Disabled"})],
        ["a", "b"],
        "p: generation 2 does not compile, it is disabled, and no rule of it is applied",
    ),
    "a list of rules that cannot even be read": (
        [({"f": GOOD}, {}), (5, {"mode": "Disabled", "match": 7, "priority": []})],
        ["a", "b"],
        "p: generation 2 does not compile, it is disabled, and no rule of it is applied",
    ),
    "on again, and still broken: the last good generation": (
        [({"f": GOOD}, {}), ({"f": BAD}, {"mode": "Disabled"}), ({"f": BAD}, {})],
        ["a"],
        "p: generation 3 does not compile, generation 1 serves",
    ),
    "what compiled while it was off is what is enforced by a broken edit": (
        [({"f": GOOD}, {"mode": "Disabled"}), ({"f": BAD}, {"mode": "Enforce"})],
        ["a"],
        "p: generation 2 does not compile, generation 1 serves",
    ),
    "a mode that cannot be read changes nothing: on": (
        [({"f": GOOD}, {}), ({"f": GOOD}, {"mode": "Observe"})],
        ["a"],
        "p: generation 2 does not compile, generation 1 serves",
    ),
    "a mode that cannot be read changes nothing: off": (
        [({"f": GOOD}, {"mode": "Disabled"}), ({"f": GOOD}, {"mode": ["Enforce"]})],
        ["a", "b"],
        "p: generation 2 does not compile, it is disabled, and no rule of it is applied",
    ),
    "off, which YAML reads as false": (
        [({"f": GOOD}, {}), ({"f": GOOD}, {"mode": False})],
        ["a", "b"],
        "p: generation 2 does not compile, it is disabled, and no rule of it is applied",
    ),
    "no generation ever compiled: its pods are refused": (
        [({"f": BAD}, {})],
        [],
        "p: generation 1 does not compile, its failurePolicy decides for its pods",
    ),
    "no generation ever compiled, and off": (
        [({"f": BAD}, {}), ({"f": BAD}, {"mode": "Disabled"})],
        ["a", "b"],
        "p: generation 2 does not compile, it is disabled, and no rule of it is applied",
    ),
    "it compiles": (
        [({"f": GOOD}, {}), ({"f": GOOD}, {"mode": "Disabled"})],
        ["a", "b"],
        "p: generation 2 compiles; it is disabled, and no rule of it is applied",
    ),
    "in shadow, and it compiles": (
        [({"f": GOOD}, {}), ({"f": GOOD}, {"mode": "Shadow"})],
        ["a", "b"],
        "p: generation 2 compiles; it is in shadow, and no rule of it decides",
    ),
    "in shadow in the edit that breaks it": (
        [({"f": GOOD}, {}), ({"f": BAD}, {"mode": "Shadow"})],
        ["a", "b"],
        "p: generation 2 does not compile, it is in shadow, and no rule of it decides",
    ),
    "in shadow, with a list of rules that cannot even be read": (
        [({"f": GOOD}, {}), (5, {"mode": "Shadow", "match": 7, "priority": []})],
        ["a", "b"],
        "p: generation 2 does not compile, it is in shadow, and no rule of it decides",
    ),
    "no generation ever compiled, and in shadow": (
        [({"f": BAD}, {"mode": "Shadow"})],
        ["a", "b"],
        "p: generation 1 does not compile, it is in shadow, and no rule of it decides",
    ),
    "enforced again, and still broken: the last good generation": (
        [({"f": GOOD}, {"mode": "Shadow"}), ({"f": BAD}, {})],
        ["a"],
        "p: generation 2 does not compile, generation 1 serves",
    ),
    "the mode of the policy is a ceiling": (
        [({"f": {"expression": GOOD, "mode": "Enforce"}}, {"mode": "Shadow"})],
        ["a", "b"],
        "p: generation 1 compiles; it is in shadow, and no rule of it decides",
    ),
}


@pytest.mark.parametrize("case", EDIT)
def test_the_newest_object_decides(case: str) -> None:
    generations, want, said = EDIT[case]
    policies = store()
    put(policies, *generations)
    assert passed(policies.serving.policies) == want
    status = policies.states["p"]
    assert str(status).partition(": spec")[0] == said
    assert (status.reason in ("Compiled", "NotCompiled")) or status.mode == "Enforce"
    assert (status.mode == "Enforce") == (want != ["a", "b"])


@pytest.mark.parametrize("case", EDIT)
def test_what_the_replica_and_the_leader_say_is_what_is_applied(case: str) -> None:
    generations, want, _ = EDIT[case]
    policies = store()
    put(policies, *generations)
    is_applied, serves = want != ["a", "b"], policies.serving.policies[0].placeholder == ""
    undecided = RuleErrorTotals(lambda *_: None)
    state = report(ReportInputs(states=policies.states, serving=policies.serving, rule_errors=undecided))
    said = state.policies["p"]
    assert (said.mode == "Enforce", said.fails, bool(said.serving)) == (is_applied, is_applied, serves)
    newest = policies._entries["p"].obj
    reconciled = ReconcileResult(
        decision=ReconcileDecision(lifecycle="Keep", phase="Steady"), policy_edits=[edit_id(newest)]
    )
    about = StatusInputs(policy=newest, states={"one": state}, result=reconciled, paused=False)
    status = build_status(about, datetime(2026, 1, 1, tzinfo=UTC))
    found = {one["type"]: one for one in status["conditions"]}
    assert found["Compiled"]["reason"] == said.reason
    assert (found["Programmed"]["reason"] == said.mode) == (not is_applied)
    assert ("disabled" in found["Ready"]["message"]) == (said.mode == "Disabled")
    assert ("in shadow" in found["Ready"]["message"]) == (said.mode == "Shadow")
    assert (said.reason in ("LastGoodServes", "NothingServes")) <= is_applied


WORSE: Final = "node.metadata.name == 'b'"


@pytest.mark.parametrize("first", ["Enforce", "Shadow"])
def test_the_order_of_rules_does_not_decide_which_are_in_shadow(first: str) -> None:
    """Nor does the mode of the first one count for the others."""
    policies = store()
    rules = {"f": {"expression": GOOD, "mode": "Enforce"}, "g": {"expression": WORSE, "mode": "Shadow"}}
    put(policies, (rules if first == "Enforce" else dict(reversed(rules.items())), {}))
    (one,) = policies.serving.policies
    assert passed([one]) == ["a"]
    assert one.shadow is not None
    assert [rule.name for rule in one.shadow.filters] == ["g"]
    undecided = RuleErrorTotals(lambda *_: None)
    state = report(ReportInputs(states=policies.states, serving=policies.serving, rule_errors=undecided))
    assert {rule.name: rule.mode for rule in state.policies["p"].rules} == {"f": "Enforce", "g": "Shadow"}


def test_what_is_enforced_anew_serves_with_the_next_set() -> None:
    policies = store()
    put(policies, ({"f": GOOD}, {"mode": "Shadow"}))
    before = policies.serving
    put(policies, ({"f": GOOD}, {}), compiles=False)
    assert policies.without_weakened(before) is before
    for _ in policies.compile_pending():
        pass
    assert (passed(before.policies), passed(policies.serving.policies)) == (["a", "b"], ["a"])
    assert policies.serving.generation != before.generation


@pytest.mark.parametrize("mode", ["Shadow", "Disabled"])
def test_nothing_has_to_be_compiled_for_it(mode: str) -> None:
    policies = store()
    put(policies, ({"f": GOOD}, {}))
    before = policies.serving
    put(policies, ({"f": BAD}, {"mode": mode}), compiles=False)
    assert policies.waits
    off = policies.without_weakened(before)
    assert (passed(before.policies), passed(off.policies)) == (["a"], ["a", "b"])
    assert off.generation != before.generation, "others are told, and pods woken"
    assert policies.without_weakened(off) is off
    policies.remove("p")
    assert policies.without_weakened(before).policies == ()


@pytest.mark.parametrize("mode", [None, "Observe"])
@pytest.mark.parametrize("stored", ["Enforce", "Shadow", "Disabled"])
def test_after_a_restart_the_newest_object_decides_how_the_stored_generation_serves(
    stored: str, mode: str | None
) -> None:
    kept = CompiledGeneration("p", "u-p", "1", obj(filters={"f": GOOD}, mode=stored))
    all_pass = {"Disabled": True, "Shadow": True, "Enforce": False, "Observe": stored != "Enforce"}
    newest = {written: ["a", "b"] if passes else ["a"] for written, passes in all_pass.items()}
    for written in ("Disabled", "Shadow", "Enforce") if mode is None else (mode,):
        policies = store(last_good={("p", "u-p"): kept})
        policies.put(obj(generation=2, filters={"f": BAD}, mode=written))
        steps = policies.compile_pending()
        while not policies.serving.policies:
            next(steps)
        assert passed(policies.serving.policies) == newest[written], "before anything else is compiled"
        for _ in steps:
            pass
        assert passed(policies.serving.policies) == newest[written]


def test_a_policy_beyond_the_limit_of_queries_is_put_back_as_its_newest_object_says() -> None:
    def asking(generation: int, *queries: str, mode: str) -> dict[str, Any]:
        data = [{"name": f"e{at}", "prometheus": {"query": one}} for at, one in enumerate(queries)]
        return obj(generation=generation, data=data, filters={"f": GOOD}, mode=mode)

    policies = PolicyStore(MODEL, CompileOptions(INSTALLED, servers={"default": 1}))
    for one in (asking(1, "x", mode="Disabled"), asking(2, "x", "y", mode="Enforce")):
        policies.put(one)
        for _ in policies.compile_pending():
            pass
    assert policies.states["p"].reason == "LastGoodServes"
    assert passed(policies.serving.policies) == ["a"]


class Always(Share):
    """All of the loop, however busy the machine is."""

    def pause(self, _began: float) -> float:
        return 0.0


class Ground(Capability):
    """A reloader whose pods and values are there once the gates are open."""

    def __init__(self) -> None:
        self.held, self.measured = asyncio.Event(), asyncio.Event()
        self.held.set()
        self.measured.set()
        self.followed: list[list[str]] = []
        self.current = PolicyReloader(store(), Mirror(lambda: 0), self.want, [self], share=Always(perf_counter))

    async def want(self, *_: Iterable[str]) -> None:
        await self.held.wait()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        self.followed.append([one.name for one in policies])
        await self.measured.wait()

    @property
    def applied(self) -> list[str]:
        return [one.name for one in self.current.state.policies.policies if one.enforced] if self.current.state else []


class Never(Share):
    """No share of the loop at all."""

    def pause(self, _began: float) -> float:
        return 3600.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.webhook.serving.reloader._BRAKE_S", 0.0)
    monkeypatch.setattr("fairlead.webhook.capability.FOLLOW_S", 3600.0)


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


WAITS: Final = {
    "for pods, of which another policy reads annotations": "held",
    "for values that another policy measures": "measured",
}


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize(
    ("mode", "followed", "said"),
    [
        pytest.param("Disabled", ["other"], "it is disabled", id="off, for which nothing is measured"),
        pytest.param("Shadow", ["other", "p"], "it is in shadow", id="in shadow"),
    ],
)
@in_loop
async def test_it_takes_effect_while_another_policy_waits(
    mode: str, followed: list[str], said: str, waits: str
) -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())
    ground.current.policies.put(obj(filters={"f": GOOD}))
    ground.current.policies.put(obj("deleted", filters={"f": GOOD}))
    await settled()
    assert ground.applied == ["deleted", "p"]
    gate: asyncio.Event = getattr(ground, WAITS[waits])
    gate.clear()
    ground.current.policies.put(obj("other", filters={"f": GOOD}))
    await settled()
    ground.current.policies.put(obj(generation=2, filters={"f": BAD}, mode=mode))
    ground.current.policies.remove("deleted")
    await settled()
    assert ground.applied == []
    gate.set()
    await settled()
    assert ground.applied == ["other"], "what waited does not bring it back"
    assert ground.followed[-1] == followed
    assert str(ground.current.policies.states["p"]).startswith(f"p: generation 2 does not compile, {said}")
    running.cancel()


@in_loop
async def test_it_takes_effect_while_another_policy_takes_long_to_compile() -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())
    ground.current.policies.put(obj(filters={"f": GOOD}))
    await settled()
    ground.current.share = Never(perf_counter)
    ground.current.policies.put(obj("long", filters={f"f{at}": f"node.metadata.name == 'n{at}'" for at in range(8)}))
    await settled()
    ground.current.policies.put(obj(generation=2, filters={"f": BAD}, mode="Disabled"))
    await settled()
    assert ground.applied == []
    assert "long" not in ground.current.policies.states
    running.cancel()


@pytest.mark.parametrize("mode", ["Disabled", "Shadow"])
@in_loop
async def test_what_is_turned_off_and_on_again_before_it_was_compiled_is_applied(mode: str) -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())
    ground.current.policies.put(obj(filters={"f": GOOD}))
    await settled()
    ground.current.policies.put(obj(generation=2, filters={"f": BAD}))
    await settled()
    ground.current.policies.put(obj(generation=3, filters={"f": BAD}, mode=mode))
    ground.current._brake()
    assert ground.applied == []
    ground.current.policies.put(obj(generation=4, filters={"f": BAD}))
    await settled()
    assert ground.applied == ["p"]
    running.cancel()
