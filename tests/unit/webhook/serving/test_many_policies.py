"""Policies in numbers: how many serve, who is compiled first, and how often a set is built."""

from typing import Any, Final

import pytest

from fairlead.policy.compile.compiler import CompileOptions, compile_steps
from fairlead.webhook.serving.compile_queue import BEGUN_MAX
from fairlead.webhook.serving.policy_status import CompiledGeneration
from fairlead.webhook.serving.policy_store import PolicyStore
from support.policy import INSTALLED, MODEL, obj
from support.webhook.policy_stores import put, serving

RULE: Final = {"f": "node.metadata.name != 'x'"}
BEYOND: Final = (
    "there are more than 2 policies, of which the oldest serve; delete policies, or raise maxPolicies in the settings"
)


def made(name: str, at: int = 0, *, generation: int = 1, **spec: Any) -> dict[str, Any]:
    one = obj(name, generation=generation, uid=name, **({"filters": RULE} | spec))
    return one | {"metadata": one["metadata"] | {"creationTimestamp": f"2026-01-01T00:00:{at:02}Z"}}


def store(*objs: dict[str, Any], most: int = 2, **more: Any) -> PolicyStore:
    policies = PolicyStore(MODEL, CompileOptions(INSTALLED), max_policies=most, **more)
    put(policies, *objs)
    return policies


@pytest.mark.parametrize("turned", [False, True])
def test_the_oldest_serve_whatever_their_names_and_whichever_came_first(*, turned: bool) -> None:
    objs = [made("z", 1), made("y", 2), made("a", 3), made("b", 3)]
    compiled = list[str]()
    policies = store(*(reversed(objs) if turned else objs), on_good=lambda one: compiled.append(one.name))
    assert serving(policies) == {"z": "1", "y": "1", "a": "NotCompiled", "b": "NotCompiled"}
    assert sorted(compiled) == ["y", "z"], "the others take neither time nor memory"
    status = policies.states["a"]
    assert (status.generation, status.serving, status.reason, status.message) == ("1", None, "NothingServes", BEYOND)
    assert not policies.waits


def test_a_new_policy_takes_no_place_of_an_older_one_and_gets_one_that_is_left() -> None:
    policies = store(made("z", 1), made("y", 2))
    put(policies, made("a", 3, priority=9))
    assert serving(policies) == {"z": "1", "y": "1", "a": "NotCompiled"}
    put(policies, made("y", 2, generation=2), made("a", 3, generation=2))
    assert serving(policies) == {"z": "1", "y": "2", "a": "NotCompiled"}
    assert (policies.states["a"].generation, policies.states["a"].message) == ("2", BEYOND)
    policies.remove("z")
    put(policies)
    assert serving(policies) == {"y": "2", "a": "2"}
    assert policies.states["a"].reason == "Compiled"


def test_the_failure_policy_decides_for_those_beyond_unless_they_are_off() -> None:
    policies = store(made("z", 1), made("y", 2), made("a", 3, failurePolicy="Ignore"), made("b", 4, mode="Disabled"))
    rejecting = {one.name for one in policies.serving.policies if one.enforced and one.placeholder and one.filters}
    assert rejecting == set()
    put(policies, made("c", 5))
    assert {one.name for one in policies.serving.policies if one.enforced and one.placeholder and one.filters} == {"c"}
    assert policies.states["b"].reason == "NotCompiled"


def test_another_limit_counts_at_once() -> None:
    policies = store(made("z", 1), made("y", 2), made("a", 3))
    policies.set_max_policies(3)
    put(policies)
    assert serving(policies) == {"z": "1", "y": "1", "a": "1"}
    policies.set_max_policies(1)
    put(policies)
    assert serving(policies) == {"z": "1", "y": "NotCompiled", "a": "NotCompiled"}


def test_after_a_restart_the_stored_generation_of_one_beyond_does_not_serve() -> None:
    kept = {(name, name): CompiledGeneration(name, name, "1", made(name)) for name in "zya"}
    policies = store(made("z", 1), made("y", 2), made("a", 3, filters=5), last_good=kept)
    assert serving(policies) == {"z": "1", "y": "1", "a": "NotCompiled"}


def test_an_edit_of_a_policy_that_serves_comes_before_all_new_ones_and_serves_soon() -> None:
    policies = store(made("old"), most=1_000)
    for number in range(300):
        policies.put(made(f"new-{number:03}", 1))
    steps = policies.compile_pending()
    for _ in range(500):
        next(steps)
    before = len(policies.states)
    policies.put(made("old", generation=2))
    while policies.states["old"].generation != "2":
        next(steps)
    assert len(policies.states) - before <= BEGUN_MAX
    served = 0
    while serving(policies)["old"] != "2":
        next(steps)
        served += 1
    assert served <= 200
    for _ in steps:
        pass
    assert len(policies.states) == 301


def test_few_are_half_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = PolicyStore(MODEL, CompileOptions(INSTALLED), max_policies=1_000)
    begun, most = set[str](), 0

    def noted(policy: Any, *arguments: Any, **more: Any) -> Any:
        begun.add(policy.metadata.name)
        return compile_steps(policy, *arguments, **more)

    monkeypatch.setattr("fairlead.webhook.serving.compile_queue.compile_steps", noted)
    for number in range(100):
        policies.put(made(f"p{number:03}"))
    for _ in policies.compile_pending():
        most = max(most, len(begun) - len(policies.states))
    assert len(policies.states) == 100
    assert 1 < most <= BEGUN_MAX


def test_sets_are_built_more_and_more_seldom_while_new_policies_are_compiled() -> None:
    policies = PolicyStore(MODEL, CompileOptions(INSTALLED), max_policies=1_000)
    for number in range(400):
        policies.put(made(f"p{number:03}"))
    built, stretches, before = 0, 0, policies.serving
    for _ in policies.compile_pending():
        stretches += 1
        built += policies.serving is not before
        before = policies.serving
    assert stretches > 4_000
    assert 3 <= built <= 6, "each after twice as long as the one before"
