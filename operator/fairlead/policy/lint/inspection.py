"""All faults and warnings of one object at once, so that its owner need not fix them one by one.

These are the faults by the schema, the faults of its expressions, and the warnings of lint. A part that cannot be read
is replaced by something harmless, so that the rest can be compiled; faults of the replacement are dropped.
"""

import logging
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps, TooLongError, drop_references, finish, within
from fairlead.policy.compile.compiler import CompileOptions, compile_steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_errors import Fault, PolicyError, in_field, too_long
from fairlead.policy.lint.acceptances import Acceptance, accepted, read_acceptances
from fairlead.policy.lint.codes import LintCode, LintWarning

Warnings = Callable[[CompiledPolicy, SchedulerExtenderPolicy], Steps[list[LintWarning]]]
"""Returns the warnings of a policy that compiles, as `policy_checks.warnings_steps` does."""
LOG: Final = logging.getLogger(__name__)
_MESSAGE_MAX: Final = 1024
_MANY: Final = 100


@dataclass(frozen=True, slots=True)
class Inspected:
    """A policy with its faults, or with its warnings."""

    policy: SchedulerExtenderPolicy | None
    compiled: CompiledPolicy | None
    faults: tuple[Fault, ...]
    warnings: tuple[LintWarning, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()


def inspect(
    obj: object, model: type[SchedulerExtenderPolicy], rules: CompileOptions, warnings: Warnings | None
) -> Inspected:
    """Read, compile and lint an object that was parsed from YAML or JSON. Raises nothing.

    Without `warnings` only its faults are found, for callers who ask for nothing else.
    """
    return finish(inspect_steps(obj, model, rules, warnings))


def inspect_steps(
    obj: object, model: type[SchedulerExtenderPolicy], rules: CompileOptions, warnings: Warnings | None
) -> Steps[Inspected]:
    """Do what `inspect` does, but pause often, so that calls are served meanwhile."""
    made = list[CompiledExpression]()
    try:
        return (yield from within(_inspected(obj, model, rules, warnings, made), rules.clock))
    except TooLongError as error:
        fault = too_long(error)
    yield from drop_references(made)
    return Inspected(None, None, (fault,))


def _inspected(
    obj: object,
    model: type[SchedulerExtenderPolicy],
    rules: CompileOptions,
    warnings: Warnings | None,
    expressions: list[CompiledExpression],
) -> Steps[Inspected]:
    try:
        policy = parse_policy(obj, model)
    except InvalidObjectError as invalid:
        found = tuple(Fault(error) for error in invalid.errors)
        yield
        rest = yield from _other_faults(obj, invalid.errors, model, rules, expressions)
        return Inspected(None, None, (*found, *rest))
    yield
    try:
        compiled = yield from compile_steps(policy, rules, expressions=expressions)
    except PolicyError as error:
        return Inspected(policy, None, error.faults)
    except Exception as error:
        LOG.exception("lint.fault")
        return Inspected(policy, None, (_internal(error),))
    if warnings is None:
        return Inspected(policy, compiled, ())
    warned = list[LintWarning]()
    try:
        warned = yield from warnings(compiled, policy)
    except Exception:
        LOG.exception("lint.fault", extra={"policy": compiled.name})
    acceptances, wrong = read_acceptances(obj)
    said = [*_namespace_warnings(obj), *warned]
    if isinstance(obj, Mapping):
        said = [*accepted(said, acceptances, obj), *wrong]
    return Inspected(policy, compiled, (), tuple(said), tuple(acceptances))


def _internal(error: Exception) -> Fault:
    return in_field((), f"internal error: {type(error).__name__}: {error}"[:_MESSAGE_MAX], "the log has more")


def _namespace_warnings(obj: object) -> Iterator[LintWarning]:
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    if isinstance(metadata, Mapping) and metadata.get("namespace"):
        message = "policies are cluster-scoped, so this is ignored"
        hint = "remove it; match.namespaces limits a policy to pods of some namespaces"
        yield LintWarning(LintCode.HAS_NO_EFFECT, ("metadata", "namespace"), message, hint)


def _other_faults(
    obj: object,
    errors: tuple[FieldError, ...],
    model: type[SchedulerExtenderPolicy],
    rules: CompileOptions,
    expressions: list[CompiledExpression],
) -> Steps[list[Fault]]:
    """Return the faults of the expressions of an object that the schema rejects."""
    if not isinstance(obj, Mapping) or not isinstance(obj.get("spec"), Mapping) or _is_vast(obj["spec"]):
        return []
    # The paths of the errors, and of everything around them.
    wrong = {error.path[:end] for error in errors for end in range(len(error.path) + 1)}
    faulty = {error.path for error in errors}
    spec = _repaired(obj["spec"], wrong, faulty)
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "x"}}
    try:
        policy = parse_policy({**header, "spec": spec}, model)
    except InvalidObjectError:
        return []
    unknown = {variable.name for at, variable in enumerate(policy.spec.variables) if ("spec", "variables", at) in wrong}
    try:
        yield from compile_steps(policy, rules, unknown=unknown, expressions=expressions)
        yield from drop_references(expressions)
    except PolicyError as error:
        return [fault for fault in error.faults if fault.path not in faulty]
    except Exception as error:
        LOG.exception("lint.fault")
        return [_internal(error)]
    return []


def _is_vast(spec: Mapping[str, Any]) -> bool:
    """Report whether some part is far larger than the schema allows; such a spec is not inspected further."""
    if len(spec) > _MANY:
        return True
    parts = [*spec.values(), *(one for part in spec.values() if isinstance(part, Mapping) for one in part.values())]
    return any(isinstance(one, list | Mapping) and len(one) > _MANY for one in parts)


Repair = Callable[[Mapping[str, Any], int], dict[str, Any]]


def _rule(harmless: str) -> Repair:
    """Return a repair that keeps only the expression of a rule."""

    def repair(item: Mapping[str, Any], at: int) -> dict[str, Any]:
        kept = item.get("expression")
        return {"name": f"x{at}", "expression": kept if isinstance(kept, str) and kept else harmless}

    return repair


def _entry(item: Mapping[str, Any], at: int) -> dict[str, Any]:
    name = item.get("name")
    return {"name": name if isinstance(name, str) else f"x{at}", "nodeLabel": {"key": "x"}}


def _variable(item: Mapping[str, Any], at: int) -> dict[str, Any]:
    name = item.get("name")
    return {"name": name if isinstance(name, str) else f"x{at}", "expression": "true"}


_REPAIRS: Final[Mapping[FieldPath, Repair]] = {
    ("spec", "match", "conditions"): _rule("true"),
    ("spec", "data"): _entry,
    ("spec", "variables"): _variable,
    ("spec", "filters"): _rule("true"),
    ("spec", "scores"): _rule("1"),
    ("spec", "preemption", "protect"): _rule("true"),
    ("spec", "binding", "annotations"): lambda _, at: {"key": f"fairlead.dev/x{at}", "expression": "''"},
}


def _repaired(
    value: Any, wrong: Container[FieldPath], faulty: Container[FieldPath], path: FieldPath = ("spec",)
) -> Any:
    """Return a value without its errors; items of lists are replaced, so that the others keep their positions."""
    if path not in wrong:
        return value
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if (*path, key) not in faulty or (*path, key) in _REPAIRS}
        repaired = {key: _repaired(item, wrong, faulty, (*path, key)) for key, item in kept.items()}
        return {key: item for key, item in repaired.items() if item is not None}
    if isinstance(value, list) and (repair := _REPAIRS.get(path)):
        return [
            repair(item if isinstance(item, Mapping) else {}, at) if (*path, at) in wrong else item
            for at, item in enumerate(value)
        ]
    return None
