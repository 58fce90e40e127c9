"""Names of the custom resource, its API group and its defaults."""

from collections.abc import Mapping
from typing import Any

GROUP = "fairlead.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "SchedulerExtenderPolicy"
LIST_KIND = f"{KIND}List"
SINGULAR = "schedulerextenderpolicy"
PLURAL = "schedulerextenderpolicies"
SHORT_NAME = "sep"
CATEGORIES = ("fairlead", "scheduling")
CRD_NAME = f"{PLURAL}.{GROUP}"

PUBLISHED_KIND = "PublishedAffinity"
PUBLISHED_PLURAL = "publishedaffinities"
# Prefixes of labels that daemons write on nodes that have joined, so that no autoscaler knows them before.
LATE_LABELS = ("feature.node.kubernetes.io/", "nvidia.com/", "amd.com/")

DEFAULT_SCHEDULER_NAME = "fairlead"
CLUSTERS_OWN_SCHEDULER = "default-scheduler"

# Annotation of the CRD with a hash of its schema, so that an operator notices a CRD of another version.
SCHEMA_HASH_ANNOTATION = f"{GROUP}/schema-hash"

# Annotations of an object that belongs to a generation of a policy.
POLICY_ANNOTATION = f"{GROUP}/policy"
POLICY_UID_ANNOTATION = f"{GROUP}/policy-uid"
POLICY_GENERATION_ANNOTATION = f"{GROUP}/policy-generation"


def scheduler_of(policy: Mapping[str, Any]) -> str:
    """Return the scheduler that a policy names, read from the object alone."""
    found = policy.get("spec", {}).get("schedulerName")
    return found if isinstance(found, str) and found else DEFAULT_SCHEDULER_NAME
