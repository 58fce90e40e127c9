"""KubeSchedulerConfiguration of a scheduler."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.render.cluster_facts import ClusterFacts, percentage
from fairlead.render.extenders import Wiring
from fairlead.render.object_names import Names
from fairlead.render.operator_settings import SchedulerSettings
from fairlead.render.templates import Object, TemplateEngine

CONFIG_FOLDER: Final = "/etc/fairlead/config"
"""Folder of config.yaml and ca.crt in a scheduler's pod."""
TLS_FOLDER: Final = "/etc/fairlead/tls"
"""Folder of tls.crt and tls.key in a scheduler's pod."""
_FIT: Final = "NodeResourcesFit"


def configuration(engine: TemplateEngine, settings: SchedulerSettings, wiring: Wiring, facts: ClusterFacts) -> Object:
    """Return the configuration of a scheduler."""
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
    """Return the URLs that a scheduler with this configuration may call."""
    return tuple(
        f"{entry['urlPrefix']}/{entry[field]}"
        for entry in config["extenders"]
        for field in sorted(entry)
        if field.endswith("Verb")
    )


def _profile(settings: SchedulerSettings) -> Mapping[str, Any]:
    """Return the profile, with the resources that are not counted in the arguments of the plugin that counts them.

    An extender's `managedResources` would have the same effect, but kube-scheduler would send it only pods that request
    one of them.
    """
    profile = {"schedulerName": settings.name, **settings.profile}
    ignored = [one.name for one in settings.managed_resources]
    plugins = profile.get("pluginConfig", [])
    if not ignored or not isinstance(plugins, list):
        return profile
    fit = next((one for one in plugins if isinstance(one, dict) and one.get("name") == _FIT), None)
    args = (fit or {}).get("args", {})
    listed = args.get("ignoredResources", []) if isinstance(args, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return profile  # kube-scheduler rejects it with its own message
    changed = {"name": _FIT, "args": {**args, "ignoredResources": sorted({*listed, *ignored})}}
    others = [one for one in plugins if one is not fit]
    return {**profile, "pluginConfig": [*others, changed]}
