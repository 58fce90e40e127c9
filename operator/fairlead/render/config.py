"""What a kube-scheduler is told: its KubeSchedulerConfiguration."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.render.cluster_facts import ClusterFacts, percentage
from fairlead.render.extenders import Wiring
from fairlead.render.object_names import Names
from fairlead.render.operator_settings import SchedulerSettings
from fairlead.render.templates import Object, TemplateEngine

CONFIG_FOLDER: Final = "/etc/fairlead/config"
"""Where a scheduler finds config.yaml and ca.crt..."""
TLS_FOLDER: Final = "/etc/fairlead/tls"
"""...and tls.crt and tls.key."""
_FIT: Final = "NodeResourcesFit"


def configuration(engine: TemplateEngine, settings: SchedulerSettings, wiring: Wiring, facts: ClusterFacts) -> Object:
    """The configuration of a scheduler."""
    (config,) = engine.render(
        "scheduler/config.yaml",
        names=Names(settings.name, facts.namespace),
        settings=settings,
        managed=settings.management == "Managed",
        percentage=percentage(settings.node_sample, facts.nodes, facts.asked_all),
        profile=_profile(settings),
        url=facts.url.rstrip("/"),
        entries=wiring.entries,
        config_folder=CONFIG_FOLDER,
        tls_folder=TLS_FOLDER,
    )
    return config


def urls(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Whatever a scheduler with this configuration may call."""
    return tuple(
        f"{entry['urlPrefix']}/{entry[field]}"
        for entry in config["extenders"]
        for field in sorted(entry)
        if field.endswith("Verb")
    )


def _profile(settings: SchedulerSettings) -> Mapping[str, Any]:
    """The profile; resources that are not counted stand in the arguments of the plugin that counts them.

    `managedResources` of an extender would do the same and keep from it all pods that do not ask for one of them.
    """
    profile = {"schedulerName": settings.name, **settings.profile}
    ignored = [one.name for one in settings.managed_resources]
    plugins = profile.get("pluginConfig", [])
    if not ignored or not isinstance(plugins, list):
        return profile
    fit = next((one for one in plugins if isinstance(one, dict) and one.get("name") == _FIT), None)
    args = (fit or {}).get("args", {})
    given = args.get("ignoredResources", []) if isinstance(args, dict) else None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        return profile  # the scheduler refuses it, in words of its own
    changed = {"name": _FIT, "args": {**args, "ignoredResources": sorted({*given, *ignored})}}
    others = [one for one in plugins if one is not fit]
    return {**profile, "pluginConfig": [*others, changed]}
