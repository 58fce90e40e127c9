"""Write crds/ anew from the models and the installed strategies."""

from pathlib import Path

from fairlead.api import crdgen, names
from fairlead.strategies.registry import installed_policy

__all__ = ["FILE", "installed_policy"]

FILE = Path(__file__).parents[2] / "crds" / f"{names.GROUP}_{names.PLURAL}.yaml"
PUBLISHED_FILE = FILE.with_name(f"{names.GROUP}_{names.PUBLISHED_PLURAL}.yaml")


def write() -> None:
    """Write what is generated here."""
    FILE.write_text(crdgen.as_yaml(crdgen.custom_resource_definition(installed_policy())))
    PUBLISHED_FILE.write_text(crdgen.as_yaml(crdgen.published_affinity_definition()))
