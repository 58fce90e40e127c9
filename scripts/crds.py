"""Write crds/ anew from the models and the installed strategies."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.api import crdgen, names
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model

if TYPE_CHECKING:
    from fairlead.api.params import Params

FILE = Path(__file__).parents[1] / "crds" / f"{names.GROUP}_{names.PLURAL}.yaml"


def installed_policy() -> type[SchedulerExtenderPolicy]:
    """The resource with every strategy that is installed."""
    filters: dict[str, type[Params]] = {}
    scores: dict[str, type[Params]] = {}
    if importlib.util.find_spec("fairlead.strategies") is not None:
        strategies = importlib.import_module("fairlead.strategies")
        for one in strategies.installed():
            filters |= {one.name: one.params} if one.filter else {}
            scores |= {one.name: one.params} if one.score else {}
    return policy_model(filters, scores)


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(crdgen.as_yaml(crdgen.custom_resource_definition(installed_policy())))
