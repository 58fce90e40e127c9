"""Policies as a cluster has them: what can be compiled of each, and which generation of it replicas serve. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.strategies.registry import installed, installed_policy


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None  # noqa: N815 - as in the API


class _Status(msgspec.Struct, frozen=True):
    servingGeneration: int | None = None  # noqa: N815


class Written(msgspec.Struct, frozen=True):
    """A policy as the API server gives it."""

    metadata: _Metadata = _Metadata()
    spec: Any = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A policy of the cluster, and what its status says of it."""

    name: str
    generation: int
    serving: int | None
    """The generation that replicas serve, as the status says; None where it says nothing."""
    compiled: CompiledPolicy | None
    """None where another generation serves, which is no longer to be had."""
    fault: str = ""
    """Why it does not compile."""
    scheduler: str = ""
    """That its spec names."""

    def __str__(self) -> str:
        if self.fault:
            serves = f"replicas still serve generation {self.serving}" if self.serving else "its failurePolicy applies"
            return f"{self.name}: generation {self.generation} does not compile, {serves}: {self.fault}"
        if self.serving is None:
            return f"{self.name}: generation {self.generation}; its status does not say yet which generation is served"
        if self.serving != self.generation:
            return f"{self.name}: generation {self.generation}; replicas still serve generation {self.serving}"
        return f"{self.name}: generation {self.generation}, which replicas serve"


def compiled(found: Sequence[Written]) -> Iterator[LivePolicy]:
    """The operator's settings may allow other prefixes of annotations than its defaults: nothing is said of these."""
    model, rules = installed_policy(), CompileOptions({one.name: one for one in installed()}, ("",))
    for one in found:
        meta, serving = one.metadata, one.status.servingGeneration if one.status else None
        metadata = {"name": meta.name, "uid": meta.uid, "generation": meta.generation}
        obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": one.spec}
        try:
            made = compile_policy(parse_policy(obj, model), rules)
        except (InvalidObjectError, PolicyError) as error:
            stands = placeholder_policy(obj) if serving is None else None
            why, scheduler = "; ".join(str(error).splitlines()), placeholder_policy(obj).scheduler_name
            yield LivePolicy(meta.name, meta.generation, serving, stands, why, scheduler)
        else:
            yield LivePolicy(meta.name, meta.generation, serving, made, scheduler=made.scheduler_name)


def compiled_of(policies: Sequence[LivePolicy]) -> list[CompiledPolicy]:
    """Those that can be asked."""
    return [one.compiled for one in policies if one.compiled is not None]
