"""Policies of a cluster, compiled, with the generation that replicas serve. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.api.mode import Mode, mode_of
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.render.extenders import Wiring
from fairlead.simulation.visibility import SkippedRule
from fairlead.strategies.contract import Strategy
from fairlead.strategies.registry import installed, policy_with

_NOT_APPLIED: Final[Mapping[Mode | None, str]] = {
    "Shadow": "and nothing of it decides, because it is in shadow",
    "Disabled": "and nothing of it is applied, because it is disabled",
}


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None  # noqa: N815 - as in the API


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    servingGeneration: int | None = None  # noqa: N815
    observedGeneration: int | None = None  # noqa: N815
    conditions: list[_Condition] | None = None

    def nothing_serves(self, generation: int) -> str:
        """Return why replicas serve nothing of a policy; "" if they do, or have not looked at this generation yet."""
        found = (one for one in self.conditions or () if (one.type, one.reason) == ("Compiled", "NothingServes"))
        compiled_ = next(found, None)
        return compiled_.message if compiled_ is not None and self.observedGeneration == generation else ""

    @property
    def is_not_installed(self) -> bool:
        """True if nothing adds published affinity to pods."""
        return any((one.type, one.reason) == ("Published", "NotInstalled") for one in self.conditions or ())


class StoredPolicy(msgspec.Struct, frozen=True):
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
    """The policy as it serves; None if another generation serves, which only the operator has stored."""
    fault: str = ""
    """Reason why the newest generation does not compile."""
    scheduler: str = ""
    """Name of the scheduler in its spec."""
    uid: str = ""
    mode: Mode | None = "Enforce"
    """Mode of the newest object, which alone says how much of any generation is in force; None: it cannot be read."""
    wiring: Wiring = field(default_factory=Wiring)
    """Wiring that its newest generation needs of the scheduler."""
    unreadable: str = ""
    """Reason why the generation that serves is not known."""
    is_not_installed: bool = False
    """True if its status says that nothing adds published affinity to pods in this cluster."""

    def describe_serving(self, *, answered: bool = True) -> str:
        """Return which generation serves; `answered`: replicas of the operator are there."""
        if not answered:
            return f"{self.name}: generation {self.generation}; no replica serves it, as none is ready"
        if self.fault:
            serves = f"replicas still serve generation {self.serving}" if self.serving else "its failurePolicy applies"
            if self.mode in _NOT_APPLIED:
                serves = _NOT_APPLIED[self.mode]
            return f"{self.name}: generation {self.generation} does not compile, {serves}: {self.fault}"
        if self.serving is None:
            return f"{self.name}: generation {self.generation}; its status does not say yet which generation is served"
        if self.serving != self.generation:
            return f"{self.name}: generation {self.generation}; replicas still serve generation {self.serving}"
        return f"{self.name}: generation {self.generation}, which replicas serve"


def compile_policies(written: Sequence[StoredPolicy], custom: Mapping[str, Strategy]) -> Iterator[LivePolicy]:
    """Compile policies, with any prefix of annotations: the operator's settings may allow more than the defaults."""
    builtin = installed()
    model, rules = (
        policy_with(builtin),
        CompileOptions({one.name: one for one in builtin}, ("",), custom, keeps_written=True),
    )
    for one in written:
        meta, status = one.metadata, one.status or _Status()
        metadata = {"name": meta.name, "uid": meta.uid, "generation": meta.generation}
        obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": one.spec}
        stands = placeholder_policy(obj)
        live = LivePolicy(
            meta.name,
            meta.generation,
            status.servingGeneration,
            None,
            scheduler=stands.scheduler_name,
            uid=meta.uid,
            mode=mode_of(obj),
            wiring=_wiring(one.spec, stands),
            is_not_installed=status.is_not_installed,
        )
        try:
            made = compile_policy(parse_policy(obj, model), rules)
        except (InvalidObjectError, PolicyError) as error:
            compiled_ = stands if status.servingGeneration is None or not stands.evaluated else None
            yield replace(live, compiled=compiled_, fault="; ".join(str(error).splitlines()))
        else:
            # It compiles here, but replicas have looked at it and serve an earlier one: it takes them too long, say.
            is_refused = status.observedGeneration == meta.generation != (status.servingGeneration or meta.generation)
            why = "" if status.servingGeneration else status.nothing_serves(meta.generation)
            yield replace(live, compiled=stands if why else None if is_refused else made, fault=why)


def with_stored(
    live: LivePolicy, stored: Mapping[str, Any] | None, why: str, custom: Mapping[str, Strategy]
) -> LivePolicy:
    """Return a policy whose stored generation serves; `why` says why there is no stored one."""
    if stored is None:
        return replace(live, unreadable=f"replicas serve generation {live.serving}, which is not known here: {why}")
    builtin = installed()
    options = CompileOptions({one.name: one for one in builtin}, ("",), custom, keeps_written=True)
    metadata, spec = stored.get("metadata") or {}, stored.get("spec")
    obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    try:
        made = compile_policy(parse_policy(obj, policy_with(builtin)), options)
    except (InvalidObjectError, PolicyError) as error:
        return with_stored(live, None, f"it does not compile here: {'; '.join(str(error).splitlines())}", custom)
    return replace(live, compiled=made if live.mode is None else in_mode(made, live.mode))


def unknown_rules(policies: Iterable[LivePolicy]) -> list[SkippedRule]:
    """Return the policies of which another generation serves, which is not known: nor is what it matches."""
    return [
        SkippedRule(
            CompiledPolicy(name=one.name, scheduler_name=one.scheduler, mode=one.mode or "Enforce"),
            "",
            "generation",
            why=one.unreadable or f"replicas serve generation {one.serving}, which is not known here",
        )
        for one in policies
        if one.compiled is None
    ]


def compiled_of(policies: Sequence[LivePolicy]) -> list[CompiledPolicy]:
    """Return the policies that have a compiled generation."""
    return [one.compiled for one in policies if one.compiled is not None]


def _wiring(spec: object, stands: CompiledPolicy) -> Wiring:
    """Return what a policy needs of its scheduler while replicas do not answer, whether it compiles or not."""
    if not stands.enforced:
        return Wiring()
    written = spec.get("binding") if isinstance(spec, Mapping) else None
    binding = written if isinstance(written, Mapping) else {}
    annotations = binding.get("annotations")
    writes = isinstance(annotations, list) and not all(map(_is_in_shadow, annotations))
    binds = writes or any(binding.get(kind) for kind in ("deviceShare", "gang"))
    return Wiring(fails=stands.rejects_on_failure, ignores=not stands.rejects_on_failure, binds=binds)


def _is_in_shadow(rule: object) -> bool:
    return isinstance(rule, Mapping) and rule.get("mode") == "Shadow"
