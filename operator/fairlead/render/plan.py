"""From the settings of a scheduler, what its policies use and what is known of the cluster, to manifests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.render.cluster_facts import ClusterFacts, image_tag
from fairlead.render.config import CONFIG_FOLDER, TLS_FOLDER, configuration, urls
from fairlead.render.extenders import Wiring
from fairlead.render.object_names import CA_HASH, CONFIG_HASH, HASH_VERSION, Names, digest
from fairlead.render.operator_settings import Resources, SchedulerSettings
from fairlead.render.templates import Object, TemplateEngine, read, written

HASHED_AS: Final = "1"
"""The way in which hashes are made: those of different ways say nothing about each other."""
_HELD_IN_ORDER: Final = ("config.yaml", "ca.crt", "pod.yaml")
_HELD: Final = frozenset(_HELD_IN_ORDER)
"""What a configuration's ConfigMap holds: exactly what its hash is made of."""
_PUBLISHED: Final = frozenset({"config.yaml", "ca.crt"})
"""What others are given who run their scheduler themselves."""
_LOCKED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there has to be for one scheduler."""

    names: Names
    config_text: str
    config_hash: str
    """Of all that decides what its pods are and do: the configuration, the authorities, the image, where they run."""
    ca_hash: str
    objects: tuple[Object, ...]
    """In the order in which they are applied. Nobody owns them: they outlive policies, and go by their labels."""
    urls: tuple[str, ...]
    """What the scheduler may call."""

    def rolled_back_to(self, config_map: Mapping[str, Any]) -> "Plan":
        """The same with pods that there were before, as their ConfigMap has kept them: the last good ones."""
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

        def put_back(obj: Object) -> Object:
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
            config_text=data["config.yaml"],
            config_hash=config_hash,
            ca_hash=pod["metadata"]["annotations"][CA_HASH],
            objects=tuple(map(put_back, self.objects)),
            urls=urls(read(data["config.yaml"])),
        )

    def with_configuration_of(self, config_map: Mapping[str, Any]) -> "Plan":
        """The same for others who run the scheduler, with the configuration that was published for them."""
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
        return replace(self, config_text=text, config_hash=config_hash, objects=(kept,), urls=urls(read(text)))


def is_published(config_map: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap is what was published for others, and nobody has edited it."""
    annotations, data = config_map["metadata"].get("annotations") or {}, config_map.get("data") or {}
    if data.keys() != _PUBLISHED or annotations.get(HASH_VERSION) != HASHED_AS:
        return False
    return bool(annotations.get(CONFIG_HASH) == digest(data["config.yaml"], data["ca.crt"]))


def is_whole(config_map: Mapping[str, Any], names: Names) -> bool:
    """Whether a ConfigMap holds the very configuration whose hash it bears: anybody may have written it.

    Those of another way of hashing cannot be told, and are not used.
    """
    metadata, data = config_map["metadata"], config_map.get("data") or {}
    annotations = metadata.get("annotations") or {}
    if data.keys() != _HELD or config_map.get("binaryData") or annotations.get(HASH_VERSION) != HASHED_AS:
        return False
    found = digest(*(data[key] for key in _HELD_IN_ORDER))
    return annotations.get(CONFIG_HASH) == found and metadata["name"] == names.configuration(found)


def renewed(config_map: Mapping[str, Any], names: Names, ca_bundle: str) -> Mapping[str, Any]:
    """A configuration as it is kept, with the authorities of now; nothing else of it is another."""
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


def plan(engine: TemplateEngine, settings: SchedulerSettings, wiring: Wiring, facts: ClusterFacts) -> Plan:
    """The manifests of a scheduler. Raises InvalidObjectError, with the setting to change."""
    names = Names(settings.name, facts.namespace)
    config = configuration(engine, settings, wiring, facts)
    config_text, ca_hash = written([config]), digest(facts.ca_bundle)
    given: dict[str, Any] = {
        "names": names,
        "settings": settings,
        "config_text": config_text,
        "ca_bundle": facts.ca_bundle,
        "ca_hash": ca_hash,
        "hash_version": HASHED_AS,
    }
    if settings.management == "ConfigOnly":
        config_hash = digest(config_text, facts.ca_bundle)
        objects = engine.render("scheduler/config_only.yaml", **given, config_hash=config_hash)
    else:
        (pod,) = engine.render(
            "scheduler/pod.yaml",
            **given,
            image=_image(settings, facts),
            resources=_resources(settings.resources),
            locked=_LOCKED,
            config_folder=CONFIG_FOLDER,
            tls_folder=TLS_FOLDER,
        )
        pod_text = written([pod])
        config_hash = digest(config_text, facts.ca_bundle, pod_text)
        config_map = names.configuration(config_hash)
        objects = engine.render("scheduler/access.yaml", names=names) + engine.render(
            "scheduler/workload.yaml",
            **given,
            pod_text=pod_text,
            pod=_pinned(pod, config_map, config_hash),
            config_map=config_map,
            config_hash=config_hash,
        )
    return Plan(
        names=names,
        config_text=config_text,
        config_hash=config_hash,
        ca_hash=ca_hash,
        objects=tuple(objects),
        urls=urls(config),
    )


def _pinned(pod: Object, config_map: str, config_hash: str) -> Object:
    """The template of pods that have this configuration."""

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


def _resources(resources: Resources) -> Mapping[str, Any]:
    return {name: amounts for name, amounts in resources.model_dump(by_alias=True).items() if amounts}
