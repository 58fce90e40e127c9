"""Plan of a scheduler: its manifests, from its settings, its wiring and the cluster facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.render.cluster_facts import ClusterFacts, image_tag, percentage
from fairlead.render.container_resources import ContainerResources
from fairlead.render.extenders import Wiring
from fairlead.render.native_groups import GATE, NativeGroups, groups_of_pods, native_groups
from fairlead.render.object_names import CA_HASH, CONFIG_HASH, HASH_VERSION, Object, ObjectNames, digest
from fairlead.render.scheduler_settings import SchedulerSettings
from fairlead.render.templates import TemplateEngine, read, written

CONFIG_FOLDER: Final = "/etc/fairlead/config"
"""Folder of config.yaml and ca.crt in a scheduler's pod."""
TLS_FOLDER: Final = "/etc/fairlead/tls"
"""Folder of tls.crt and tls.key in a scheduler's pod."""
_FIT: Final = "NodeResourcesFit"
HASHED_AS: Final = "1"
"""Version of the hashes: hashes of different versions are not comparable."""
_DATA_KEYS: Final = ("config.yaml", "ca.crt", "pod.yaml")
_DATA_KEY_SET: Final = frozenset(_DATA_KEYS)
"""Keys of a configuration's ConfigMap: exactly the inputs of its hash."""
_PUBLISHED: Final = frozenset({"config.yaml", "ca.crt"})
"""Keys of the ConfigMap that is published for a ConfigOnly scheduler."""
_SECURITY_CONTEXT: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Desired objects of one scheduler."""

    names: ObjectNames
    config_hash: str
    """Hash of everything that decides its pods: configuration, authorities, image and placement."""
    ca_hash: str
    groups: NativeGroups
    objects: tuple[Object, ...]
    """Objects in the order of application. They have no owner: they outlive policies, and are pruned by label."""

    def rolled_back_to(self, config_map: Mapping[str, Any]) -> "Plan":
        """Return the plan with the pods of an earlier configuration, as its ConfigMap has them."""
        data, metadata = config_map["data"], config_map["metadata"]
        annotations = {key: metadata["annotations"][key] for key in (CONFIG_HASH, HASH_VERSION)}
        config_hash, pod = annotations[CONFIG_HASH], read(data["pod.yaml"])
        kept = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": metadata["name"],
                "namespace": self.names.namespace,
                "labels": dict(self.names.labels),
                "annotations": annotations,
            },
            "immutable": True,
            "data": dict(data),
        }

        def roll_back(obj: Object) -> Object:
            if obj["kind"] == "ConfigMap":
                return kept
            if obj["kind"] == "Deployment":
                template = _pinned(pod, metadata["name"], config_hash)
                return {
                    **obj,
                    "metadata": {**obj["metadata"], "annotations": annotations},
                    "spec": {**obj["spec"], "template": template},
                }
            return obj

        return replace(
            self,
            config_hash=config_hash,
            ca_hash=pod["metadata"]["annotations"][CA_HASH],
            groups=groups_of_pods(pod, self.groups),
            objects=tuple(map(roll_back, self.objects)),
        )

    def with_configuration_of(self, config_map: Mapping[str, Any]) -> "Plan":
        """Return the plan of a ConfigOnly scheduler with the configuration that is published already."""
        text = config_map["data"]["config.yaml"]
        (published,) = self.objects
        metadata, data = published["metadata"], published["data"]
        config_hash = digest(text, data["ca.crt"])
        annotations = {**metadata["annotations"], CONFIG_HASH: config_hash}
        kept = {
            **published,
            "metadata": {**metadata, "annotations": annotations},
            "data": {**data, "config.yaml": text},
        }
        return replace(self, config_hash=config_hash, objects=(kept,))


def is_published(config_map: Mapping[str, Any]) -> bool:
    """Return whether a ConfigMap is the published one of a ConfigOnly scheduler, unchanged by others."""
    annotations, data = config_map["metadata"].get("annotations") or {}, config_map.get("data") or {}
    if data.keys() != _PUBLISHED or annotations.get(HASH_VERSION) != HASHED_AS:
        return False
    return bool(annotations.get(CONFIG_HASH) == digest(data["config.yaml"], data["ca.crt"]))


def is_whole(config_map: Mapping[str, Any], names: ObjectNames) -> bool:
    """Return whether a ConfigMap holds the configuration of its hash, because others may have written it.

    ConfigMaps with another version of the hash cannot be verified, and are not used.
    """
    metadata, data = config_map["metadata"], config_map.get("data") or {}
    annotations = metadata.get("annotations") or {}
    if data.keys() != _DATA_KEY_SET or config_map.get("binaryData") or annotations.get(HASH_VERSION) != HASHED_AS:
        return False
    found = digest(*(data[key] for key in _DATA_KEYS))
    return annotations.get(CONFIG_HASH) == found and metadata["name"] == names.configuration(found)


def renewed(config_map: Mapping[str, Any], names: ObjectNames, ca_bundle: str) -> Mapping[str, Any]:
    """Return a kept configuration with the current authorities and no other change."""
    data = config_map["data"]
    if data["ca.crt"] == ca_bundle:
        return config_map
    pod = read(data["pod.yaml"])
    annotations = {**pod["metadata"]["annotations"], CA_HASH: digest(ca_bundle)}
    pod_text = written([{**pod, "metadata": {**pod["metadata"], "annotations": annotations}}])
    config_hash = digest(data["config.yaml"], ca_bundle, pod_text)
    return {
        "metadata": {
            "name": names.configuration(config_hash),
            "annotations": {CONFIG_HASH: config_hash, HASH_VERSION: HASHED_AS},
        },
        "data": {"config.yaml": data["config.yaml"], "ca.crt": ca_bundle, "pod.yaml": pod_text},
    }


def plan(
    engine: TemplateEngine,
    settings: SchedulerSettings,
    wiring: Wiring,
    facts: ClusterFacts,
    metrics_from: Sequence[Mapping[str, Any]] = (),
) -> Plan:
    """Return the plan of a scheduler whose metrics these peers may scrape; none: all may.

    Raises InvalidObjectError that names the setting to change.
    """
    names = ObjectNames(settings.name, facts.namespace)
    config = configuration(engine, settings, wiring, facts)
    config_text, ca_hash = written([config]), digest(facts.ca_bundle)
    groups = native_groups(settings, facts)
    values: dict[str, Any] = {
        "names": names,
        "settings": settings,
        "config_text": config_text,
        "ca_bundle": facts.ca_bundle,
        "ca_hash": ca_hash,
        "hash_version": HASHED_AS,
    }
    if settings.management == "ConfigOnly":
        config_hash = digest(config_text, facts.ca_bundle)
        objects = engine.render("scheduler/config_only.yaml", **values, config_hash=config_hash)
    else:
        (pod,) = engine.render(
            "scheduler/pod.yaml",
            **values,
            image=_image(settings, facts),
            arguments=_arguments(settings, groups),
            resources=_resources(settings.resources),
            locked=_SECURITY_CONTEXT,
            config_folder=CONFIG_FOLDER,
            tls_folder=TLS_FOLDER,
        )
        pod_text = written([pod])
        config_hash = digest(config_text, facts.ca_bundle, pod_text)
        config_map = names.configuration(config_hash)
        objects = engine.render("scheduler/access.yaml", names=names) + engine.render(
            "scheduler/workload.yaml",
            **values,
            pod_text=pod_text,
            pod=_pinned(pod, config_map, config_hash),
            config_map=config_map,
            config_hash=config_hash,
            metrics_from=[dict(peer) for peer in metrics_from],
        )
    return Plan(
        names=names,
        config_hash=config_hash,
        ca_hash=ca_hash,
        groups=groups,
        objects=tuple(objects),
    )


def _pinned(pod: Object, config_map: str, config_hash: str) -> Object:
    """Return the pod template with the ConfigMap and the hash of its configuration."""

    def named(volume: Object) -> Object:
        return volume | {"configMap": volume["configMap"] | {"name": config_map}} if "configMap" in volume else volume

    metadata, spec = pod["metadata"], pod["spec"]
    annotations = {**metadata["annotations"], CONFIG_HASH: config_hash}
    return {
        **pod,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "volumes": [named(volume) for volume in spec["volumes"]]},
    }


def _image(settings: SchedulerSettings, facts: ClusterFacts) -> str:
    image = settings.image
    if image.digest:
        return f"{image.repository}@{image.digest}"
    try:
        return f"{image.repository}:{image.tag or image_tag(facts.server_versions)}"
    except ValueError as error:
        raise InvalidObjectError(
            [FieldError(("schedulers", settings.name, "image", "tag"), str(error), "set a tag")]
        ) from None


def _arguments(settings: SchedulerSettings, groups: NativeGroups) -> list[str]:
    """Return the arguments that settings add; the check of the configuration has them too, because gates change it."""
    verbosity = [f"--v={settings.verbosity}"] if settings.verbosity else []
    chosen = settings.feature_gates | ({GATE: True} if groups.is_rendered else {})
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(chosen.items()))
    return [*verbosity, *([f"--feature-gates={gates}"] if gates else []), *settings.extra_args]


def _resources(resources: ContainerResources) -> Mapping[str, Any]:
    return {name: amounts for name, amounts in resources.model_dump(by_alias=True).items() if amounts}


def configuration(engine: TemplateEngine, settings: SchedulerSettings, wiring: Wiring, facts: ClusterFacts) -> Object:
    """Return the configuration of a scheduler."""
    (config,) = engine.render(
        "scheduler/config.yaml",
        names=ObjectNames(settings.name, facts.namespace),
        settings=settings,
        managed=settings.management == "Managed",
        percentage=percentage(settings.node_sample, facts.nodes, facts.asked_all, asks_all=wiring.asks_all),
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
