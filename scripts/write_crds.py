"""Write crds/ anew from the models and the installed strategies."""

from pathlib import Path

from fairlead import strategies
from fairlead.api import crdgen, names
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model

FILE = Path(__file__).parents[1] / "crds" / f"{names.GROUP}_{names.PLURAL}.yaml"


def installed_policy() -> type[SchedulerExtenderPolicy]:
    """The resource with every strategy that is installed."""
    installed = strategies.installed()
    return policy_model(
        filters={one.name: one.params for one in installed if one.filter},
        scores={one.name: one.params for one in installed if one.score},
    )


if __name__ == "__main__":
    FILE.write_text(crdgen.as_yaml(crdgen.custom_resource_definition(installed_policy())))
