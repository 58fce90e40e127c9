"""Configurations of kube-scheduler: profiles, of whose plugins some become rules and others stay settings. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.api.params import Listed
from fairlead.api.parse import parse_params
from fairlead.api.values import Name
from fairlead.cli.imports.draft import PolicyDraft, PolicyNames
from fairlead.cli.imports.foreign import Foreign, ObjectHead, below, join_names
from fairlead.cli.imports.trimaran import IMPORTERS, LoadSources

CRANE: Final = "Dynamic"
REPLACING_EXTENDERS: Final = "policies in their place, as docs/guide/replacing-an-extender.md says"
_EXTENDERS: Final = "extenders"
_ELSEWHERE: Final = {
    _EXTENDERS: REPLACING_EXTENDERS,
    "percentageOfNodesToScore": "schedulers[].nodeSample in the operator's settings",
    "podMaxBackoffSeconds": "schedulers[].podMaxBackoffSeconds in the operator's settings",
}


class ProfilePlugin(Foreign):
    """Plugin at an extension point."""

    name: str
    weight: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class ProfilePlugins(Foreign):
    """Plugins at an extension point."""

    enabled: Listed[ProfilePlugin] = ()
    disabled: Listed[ProfilePlugin] = ()


class PluginArguments(Foreign):
    """Arguments of a plugin."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class SchedulerProfile(Foreign):
    """Plugins of one scheduler name."""

    scheduler_name: Name = CLUSTERS_OWN_SCHEDULER
    plugins: dict[str, ProfilePlugins] = Field(default_factory=dict)
    plugin_config: Listed[PluginArguments] = ()

    def given_weight(self, plugin: str) -> int | None:
        """Return the weight with which a plugin scores, 0 if none is given; None if it is not enabled."""
        scoring = self.plugins.get("score", ProfilePlugins())
        enabled = [*scoring.enabled]
        # What is disabled at score is so for multiPoint alone; what is enabled there, too, is enabled.
        if not {plugin, "*"} & {one.name for one in scoring.disabled}:
            enabled += self.plugins.get("multiPoint", ProfilePlugins()).enabled
        return next((one.weight for one in enabled if one.name == plugin), None)

    def arguments(self, plugin: str) -> tuple[int, PluginArguments] | None:
        """Return the arguments of a plugin, and their index; the last ones count."""
        found = [(at, one) for at, one in enumerate(self.plugin_config) if one.name == plugin]
        return found[-1] if found else None

    @property
    def enabled(self) -> frozenset[str]:
        """Plugins that are enabled at any extension point."""
        return frozenset(one.name for point in self.plugins.values() for one in point.enabled)

    @property
    def named(self) -> frozenset[str]:
        """Plugins that are enabled or have arguments."""
        return self.enabled.union(one.name for one in self.plugin_config)


class SchedulerConfiguration(ObjectHead):
    """The object."""

    profiles: Listed[SchedulerProfile] = ()


@dataclass(slots=True)
class ProfileImport:
    """Result of one configuration."""

    drafts: list[PolicyDraft] = field(default_factory=list)
    crane_schedulers: list[str] = field(default_factory=list)
    """Names of the schedulers that use crane's plugin, whose rules are in a file of their own."""


def import_scheduler_configuration(
    data: object, where: str, names: PolicyNames, *, has_crane_policy: bool = False
) -> ProfileImport:
    """Return a policy for each profile with plugins that read load. Raises InvalidObjectError.

    `has_crane_policy` is whether the policy of crane's plugin is imported with it.
    """
    found = parse_params(data, SchedulerConfiguration)
    result, errors = ProfileImport(), list[FieldError]()
    for at, profile in enumerate(found.profiles):
        if CRANE in profile.enabled:
            result.crane_schedulers.append(profile.scheduler_name)
        try:
            draft = _profile(profile, ("profiles", at), where, names)
            for text in _notes(profile, draft, has_crane_policy=has_crane_policy):
                draft.note(text)
            result.drafts.append(draft)
        except InvalidObjectError as invalid:
            errors += invalid.errors
    if errors:
        raise InvalidObjectError(errors)
    if not result.drafts:
        result.drafts.append(PolicyDraft("", [f"The KubeSchedulerConfiguration ({where}) has no profiles to import."]))
    _note_settings(found, result.drafts[0])
    return result


def _profile(profile: SchedulerProfile, path: FieldPath, where: str, names: PolicyNames) -> PolicyDraft:
    name = profile.scheduler_name
    weights = {one: weight for one in IMPORTERS if (weight := profile.given_weight(one)) is not None}
    draft = PolicyDraft(
        names.take(name, f"{name}-load") if weights else "",
        [f"From the profile {name} of the KubeSchedulerConfiguration ({where})."],
    )
    if weights:
        draft.scheduler(name)
    sources, errors = LoadSources(draft), list[FieldError]()
    has_weights = any(weights.values())
    for plugin, weight in weights.items():
        given = profile.arguments(plugin)
        at: FieldPath = (*path, "pluginConfig", given[0], "args") if given else path
        try:
            # No weight is 1 for kube-scheduler. If no plugin has one, they stay equal with a greater one.
            IMPORTERS[plugin](given[1].args if given else {}, (weight or 1) if has_weights else None, sources)
        except InvalidObjectError as invalid:
            errors += below(at, invalid).errors
    if errors:
        raise InvalidObjectError(errors)
    return draft


def _notes(profile: SchedulerProfile, draft: PolicyDraft, *, has_crane_policy: bool) -> Iterator[str]:
    """Yield what a profile has that its policy does not."""
    has_crane = CRANE in profile.enabled
    uncalled = [one for one in (*IMPORTERS, CRANE) if one in profile.named and not _is_called(profile, one)]
    if uncalled:
        yield f"Not imported: {join_names(uncalled)}, because the profile does not enable it at score."
    if _EXTENDERS in profile.unread:
        yield f"Not imported: {_EXTENDERS} of the profile. Write {REPLACING_EXTENDERS}."
    if not draft.has_rules and not has_crane:
        yield "It has no plugin that reads load, so there is nothing to import."
        return
    if has_crane and has_crane_policy:
        yield f"{CRANE} of crane has its rules in a file of its own, which is imported with it."
    elif has_crane:
        given = profile.arguments(CRANE)
        file = f" ({given[1].args['policyConfigPath']})" if given and "policyConfigPath" in given[1].args else ""
        yield f"{CRANE} of crane has its rules in a file of its own{file}: import that too."
    kept = [*_kept(profile)]
    if kept:
        yield (
            f"Not imported: {'; '.join(kept)}. Write what is still wanted as schedulers[].profile into the operator's "
            "settings; plugins that kube-scheduler does not contain need an image that does."
        )
    unread = [one for one in profile.unread if one != _EXTENDERS]
    if unread:
        yield f"Not imported: {join_names(unread)} of the profile."


def _is_called(profile: SchedulerProfile, plugin: str) -> bool:
    """Return whether kube-scheduler calls a plugin: crane's at any point, the others where they score."""
    return plugin in profile.enabled if plugin == CRANE else profile.given_weight(plugin) is not None


def _kept(profile: SchedulerProfile) -> Iterator[str]:
    """Yield the parts of a profile that other plugins have."""
    ours = {*IMPORTERS, CRANE}
    for point, plugins in profile.plugins.items():
        enabled = [one.name for one in plugins.enabled if one.name not in ours]
        disabled = [one.name for one in plugins.disabled]
        if enabled:
            yield f"{join_names(enabled)} in plugins.{point}.enabled"
        if disabled:
            yield f"{join_names(disabled)} in plugins.{point}.disabled"
    others = [one.name for one in profile.plugin_config if one.name not in ours]
    if others:
        yield f"pluginConfig of {join_names(others)}"


def _note_settings(configuration: SchedulerConfiguration, draft: PolicyDraft) -> None:
    """Name the settings of the scheduler that are none of a policy."""
    extra: Mapping[str, object] = configuration.model_extra or {}
    for name, place in _ELSEWHERE.items():
        if name in extra:
            draft.note(f"Not imported: {name}. Write {place}.")
    others = [name for name in sorted(extra) if name not in _ELSEWHERE]
    if others:
        draft.note(f"Not imported: {join_names(others)}. The operator sets these for the schedulers that it manages.")
