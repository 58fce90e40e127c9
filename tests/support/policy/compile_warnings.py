"""Warnings about policies that compile, by the parts of their spec."""

from typing import Any

from generate.crds import installed_policy

from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.lint.codes import LintWarning
from fairlead.policy.lint.policy_checks import warnings
from fairlead.strategies.registry import installed

_MODEL = installed_policy()
_RULES = CompileOptions({strategy.name: strategy for strategy in installed()})
GOOD_FILTER = {"name": "good", "expression": "node.spec.unschedulable == false"}
LABELS = "node.metadata.labels"


def warnings_of(**spec: Any) -> list[LintWarning]:
    """Return the warnings about a policy with this spec."""
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "some"},
        "spec": spec,
    }
    parsed = parse_policy(policy, _MODEL)
    return warnings(compile_policy(parsed, _RULES), parsed)


def warnings_of_filter(expression: str, **more: Any) -> list[LintWarning]:
    """Return the warnings about a filter."""
    return warnings_of(filters=[{"name": "it", "expression": expression, **more}])


def warnings_of_score(expression: str, **more: Any) -> list[LintWarning]:
    """Return the warnings about a score, of a policy with the data and the variable that it reads."""
    data = [{"name": "load", "nodeLabel": {"key": "load"}}] if "data.load" in expression else []
    variables = [{"name": "count", "expression": "double(pods.size())"}] if "variables.count" in expression else []
    return warnings_of(data=data, variables=variables, scores=[{"name": "it", "expression": expression, **more}])


def reasons_of(warned: list[LintWarning]) -> list[str]:
    """Return their reasons."""
    return [str(warning.reason) for warning in warned]
