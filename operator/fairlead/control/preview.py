"""Preview of the objects that the operator would create for policies, without a cluster. Pure.

It uses the operator's own decision, as for schedulers that do not exist yet. What only the cluster knows is a named
placeholder, and so is every hash that depends on one.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import scheduler_of
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.decide import DesiredScheduler, ObservedScheduler, decide
from fairlead.control.decide.desired import Obj, PolicyIndex, is_paused
from fairlead.control.decide.drift import APPLIED, to_apply
from fairlead.control.decide.unlisted_schedulers import denial_reason, in_order_of_request
from fairlead.kube.watch.secrets import TLS, Secret, SecretMetadata, body
from fairlead.render.cluster_facts import ALL_UP_TO, ClusterFacts
from fairlead.render.extenders import wire
from fairlead.render.native_groups import GATE
from fairlead.render.object_names import Object
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.plan import Plan
from fairlead.render.scheduler_settings import SchedulerSettings
from fairlead.render.templates import TemplateEngine

TAG: Final = "<version: of the API server>"
CA_HASH: Final = "<ca-hash>"
APPLIED_HASH: Final = "<applied-hash>"
_NOTHING: Final = ObservedScheduler(config_maps={})
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewInputs:
    """Inputs of a preview beside policies and settings."""

    namespace: str
    service: str
    """Name of the Service that schedulers call."""
    port: int
    version: str = ""
    """Version of the API server; empty for a placeholder."""
    ca: str = ""
    """Authority of the operator's certificate, in PEM; empty for a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Objects that would be created, and notes about them."""

    schedulers: Sequence[str]
    objects: Sequence[Object]
    """The objects in the order in which they are applied, scheduler by scheduler."""
    placeholders: Mapping[str, str]
    """Placeholders with their meanings."""
    notes: Sequence[str] = ()


def render_preview(
    engine: TemplateEngine,
    model: type[SchedulerExtenderPolicy],
    policies: Iterable[Obj],
    settings: OperatorSettings,
    inputs: PreviewInputs,
) -> Preview:
    """Return the preview; the order of the policies does not matter. Raises InvalidObjectError."""
    index = PolicyIndex(model)
    for one in policies:
        # fields that a policy has once it is applied; no rendered object depends on them
        index.apply_event(None, {**one, "metadata": {**one["metadata"], "uid": "", "generation": 0}})
    listed = {one.name for one in settings.schedulers}
    names = sorted(listed | {scheduler_of(one) for one in index.policies.values()})
    _refuse(names, settings)
    objects, meanings, notes = list[Object](), dict[str, str](), list[str]()
    if settings.tls.mode != "SelfManaged":
        notes.append(f"tls.mode is {settings.tls.mode}: the operator does not create the Secrets with certificates")
    authority = _authority(settings)
    for name in names:
        desired = index.desired_scheduler(name, settings, {})
        plan = _plan(engine, desired, inputs, authority)
        named = _Named(plan, inputs, authority, desired.settings)
        if settings.tls.mode == "SelfManaged":
            objects.append(named.certificate())
        objects += [named.applied(one) for one in plan.objects]
        meanings |= {mark: text for mark, text in named.meanings().items() if any(_holds(one, mark) for one in objects)}
        notes += _notes(name, desired, index.policies_of(name))
    return Preview(schedulers=names, objects=objects, placeholders=meanings, notes=notes)


def _refuse(names: Sequence[str], settings: OperatorSettings) -> None:
    """Raise InvalidObjectError for schedulers that may not exist, in a cluster that has none yet."""
    requested = dict.fromkeys(names, "")
    for name in names:
        if why := denial_reason(name, settings):
            raise InvalidObjectError([FieldError(("unlistedSchedulers",), why)])
    new = in_order_of_request(requested, settings)
    if len(new) > settings.max_unlisted_schedulers:
        most = settings.max_unlisted_schedulers
        why = f"is {most}, and {len(new)} schedulers are not listed: {', '.join(new[:_SHOWN])}"
        more = ", ..." if len(new) > _SHOWN else ""
        raise InvalidObjectError([FieldError(("maxUnlistedSchedulers",), why + more, "list them under schedulers")])


def _plan(engine: TemplateEngine, desired: DesiredScheduler, inputs: PreviewInputs, authority: str) -> Plan:
    settings = desired.settings
    if not _is_image_known(settings, inputs):
        settings = settings.model_copy(update={"image": settings.image.model_copy(update={"tag": TAG})})
    facts = ClusterFacts(
        namespace=inputs.namespace,
        url=f"https://{inputs.service}.{inputs.namespace}.svc:{inputs.port}",
        ca_bundle=inputs.ca or authority,
        server_versions=(inputs.version,),
        nodes=ALL_UP_TO,
    )
    plan = decide(engine, replace(desired, settings=settings), facts, _NOTHING, 0.0).plan
    if plan is None:
        raise AssertionError("a new scheduler that is desired has a plan")
    return plan


def _is_image_known(settings: SchedulerSettings, inputs: PreviewInputs) -> bool:
    image = settings.image
    return bool(settings.management == "ConfigOnly" or inputs.version or image.tag or image.digest)


@dataclass(frozen=True, slots=True)
class _Named:
    """Objects of a scheduler, with named placeholders for what is unknown."""

    plan: Plan
    inputs: PreviewInputs
    authority: str
    settings: SchedulerSettings

    @property
    def _config_hash(self) -> str:
        return f"<config-hash of {self.plan.names.scheduler}>"

    def meanings(self) -> dict[str, str]:
        """Return all placeholders with their meanings."""
        secret = self.plan.names.certificate
        return {
            self.authority: "the operator's authority, as PEM (tls.crt of Secret fairlead-ca); set it with --ca FILE",
            TAG: "the version of the API server; set it with --kubernetes-version, or set a tag in the settings",
            self._in_secret("ca.crt"): f"in base64, as everything in a Secret; the operator creates {secret}",
            self._in_secret("tls.crt"): "the scheduler's certificate",
            self._in_secret("tls.key"): "its key",
            CA_HASH: "computed from the authority",
            self._config_hash: "computed from the configuration, the authority and the pods",
            APPLIED_HASH: "computed from the object: the operator recognizes by it what it has applied",
        }

    def certificate(self) -> Object:
        """Return the Secret of the scheduler's certificate, which is created, not applied."""
        names = self.plan.names
        made = body(Secret(SecretMetadata(names.certificate, names.namespace, labels=dict(names.labels)), TLS))
        known = b64encode(self.inputs.ca.encode()).decode() if self.inputs.ca else self._in_secret("ca.crt")
        return {**made, "data": {"ca.crt": known} | {key: self._in_secret(key) for key in ("tls.crt", "tls.key")}}

    def applied(self, obj: Object) -> Object:
        """Return an object as it is applied."""
        meant = to_apply(_mapped(obj, self._without_hashes))
        if any(_holds(meant, mark) for mark in self.meanings()):
            meant["metadata"]["annotations"][APPLIED] = APPLIED_HASH
        return meant

    def _without_hashes(self, text: str) -> str:
        if not self.inputs.ca:
            text = text.replace(self.plan.ca_hash, CA_HASH)
        return text.replace(self.plan.config_hash, self._config_hash) if self._guesses else text

    @property
    def _guesses(self) -> bool:
        """True if an input of the configuration's hash is unknown."""
        return not self.inputs.ca or not _is_image_known(self.settings, self.inputs)

    def _in_secret(self, key: str) -> str:
        return f"<{key}: of the Secret {self.plan.names.certificate}>"


def _authority(settings: OperatorSettings) -> str:
    own = settings.tls.mode == "SelfManaged"
    return f"<ca.crt: of the Secret {'fairlead-ca' if own else 'fairlead-webhook-tls'}>"


def _notes(name: str, desired: DesiredScheduler, policies: Sequence[Obj]) -> Iterator[str]:
    if desired.settings.node_sample == "Auto" and not wire(desired.policies).asks_all:
        yield f"{name}: in a cluster with more than {ALL_UP_TO} nodes, percentageOfNodesToScore is not set"
    if desired.settings.groups == "Auto":
        yield f"{name}: where the API server serves Kubernetes' own groups, it has the feature gate {GATE}, too"
    if is_paused(policies):
        yield f"{name}: while one of its policies is paused, nothing of it is updated except certificates"


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            return {key: _mapped(one, change) for key, one in value.items()}
        case list() | tuple():
            return [_mapped(one, change) for one in value]
        case _:
            return value


def _holds(value: Any, mark: str) -> bool:
    match value:
        case str():
            return mark in value
        case Mapping():
            return any(_holds(one, mark) for one in value.values())
        case list() | tuple():
            return any(_holds(one, mark) for one in value)
        case _:
            return False
