"""Write crds/ anew from the models and the installed strategies."""

from pathlib import Path

from fairlead.api import crdgen, names
from fairlead.strategies.registry import installed_policy

__all__ = ["FILE", "installed_policy"]

FILE = Path(__file__).parents[1] / "crds" / f"{names.GROUP}_{names.PLURAL}.yaml"


if __name__ == "__main__":
    FILE.write_text(crdgen.as_yaml(crdgen.custom_resource_definition(installed_policy())))
