"""Policies put into a store and compiled, and the generations that serve then."""

from typing import Any

from fairlead.webhook.serving.policy_store import PolicyStore


def put(policies: PolicyStore, *objs: dict[str, Any]) -> None:
    """Put policies, and compile all that is pending."""
    for one in objs:
        policies.put(one)
    for _ in policies.compile_pending():
        pass


def serving(policies: PolicyStore) -> dict[str, str]:
    """Return the generation of each policy, or the reason of what stands for it."""
    return {one.name: one.placeholder or one.generation for one in policies.serving.policies}
