"""What the custom resource and the things around it are called."""

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

DEFAULT_SCHEDULER_NAME = "fairlead"
CLUSTERS_OWN_SCHEDULER = "default-scheduler"

# On the CRD: a hash of its schema, so that an operator can tell that the one that is served is not its own.
SCHEMA_HASH_ANNOTATION = f"{GROUP}/schema-hash"
