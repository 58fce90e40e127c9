"""Policies of a cluster, compiled, with the generation that replicas serve. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.mode import mode_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.strategies.contract import Strategy
from fairlead.strategies.registry import installed, policy_with


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None  # noqa: N815 - as in the API


class _Status(msgspec.Struct, frozen=True):
    servingGeneration: int | None = None  # noqa: N815


class Written(msgspec.Struct, frozen=True):
    """A policy as the API server returns it."""

    metadata: _Metadata = _Metadata()
    spec: Any = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A policy of the cluster, with its serving generation."""

    name: str
    generation: int
    serving: int | None
    """The serving generation of the status; None if the status has none."""
    compiled: CompiledPolicy | None
    """None if another generation serves, which the API server no longer has."""
    fault: str = ""
    """Why the policy does not compile."""
    scheduler: str = ""
    """Name of the scheduler in its spec."""
    is_disabled: bool = False
    """Whether it does not compile and is disabled, so that nothing of it is applied."""

    def __str__(self) -> str:
        if self.fault:
            serves = f"replicas still serve generation {self.serving}" if self.serving else "its failurePolicy applies"
            if self.is_disabled:
                serves = "and nothing of it is applied, because it is disabled"
            return f"{self.name}: generation {self.generation} does not compile, {serves}: {self.fault}"
        if self.serving is None:
            return f"{self.name}: generation {self.generation}; its status does not say yet which generation is served"
        if self.serving != self.generation:
            return f"{self.name}: generation {self.generation}; replicas still serve generation {self.serving}"
        return f"{self.name}: generation {self.generation}, which replicas serve"


def compiled(found: Sequence[Written], custom: Mapping[str, Strategy]) -> Iterator[LivePolicy]:
    """Compile policies, with any prefix of annotations: the operator's settings may allow more than the defaults."""
    builtin = installed()
    model, rules = policy_with(builtin), CompileOptions({one.name: one for one in builtin}, ("",), custom)
    for one in found:
        meta, serving = one.metadata, one.status.servingGeneration if one.status else None
        metadata = {"name": meta.name, "uid": meta.uid, "generation": meta.generation}
        obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": one.spec}
        try:
            made = compile_policy(parse_policy(obj, model), rules)
        except (InvalidObjectError, PolicyError) as error:
            is_disabled = mode_of(obj) == "Disabled"
            stands = placeholder_policy(obj) if serving is None or is_disabled else None
            why, scheduler = "; ".join(str(error).splitlines()), placeholder_policy(obj).scheduler_name
            yield LivePolicy(meta.name, meta.generation, serving, stands, why, scheduler, is_disabled=is_disabled)
        else:
            yield LivePolicy(meta.name, meta.generation, serving, made, scheduler=made.scheduler_name)


def compiled_of(policies: Sequence[LivePolicy]) -> list[CompiledPolicy]:
    """Return the policies that have a compiled generation."""
    return [one.compiled for one in policies if one.compiled is not None]
