"""Policies, nodes and pods in few words, so that a test says only what matters to it."""

from support.policy.asking import Clock, Endless, Evaluation
from support.policy.building import INSTALLED, MODEL, NOW, SECOND, faults, node, ns, obj, on_node, placed, pod, policy

__all__ = [
    "INSTALLED",
    "MODEL",
    "NOW",
    "SECOND",
    "Clock",
    "Endless",
    "Evaluation",
    "faults",
    "node",
    "ns",
    "obj",
    "on_node",
    "placed",
    "pod",
    "policy",
]
