"""Operator of the experiments with a real scheduler: its policy, the extender that it is, and what it has published."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.operating import (
    NAMESPACE,
    POLICIES,
    Replica,
    asking,
    replicas_running,
    wait_until_served,
    write_certificate,
)
from bench.programs import Extender
from bench.scheduler import Wiring
from bench.stage import NAME, Stage
from fairlead.learned.content import demands_in, pairs_in
from fairlead.learned.demands import Demands
from fairlead.learned.pairs import Pairs
from fairlead.learned.published import LABEL, decode

_CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_ABOUT = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "learns"}}


@dataclass(frozen=True, slots=True)
class LearningOperator:
    """Operator that leads, with one policy for the scheduler `NAME`."""

    stage: Stage
    replica: Replica

    def serve(self, scores: Sequence[Mapping[str, Any]]) -> None:
        """Have a policy with these scores, and return when it serves."""
        spec = {"schedulerName": NAME, "scores": [dict(one) for one in scores]}
        made = self.stage.api.apply(f"{POLICIES}/learns", {**_ABOUT, "spec": spec})
        (asked,) = asking(self.stage.kubeconfig, [self.replica])
        with closing(asked):
            wait_until_served([asked], made)

    def entries(self, folder: Path) -> list[dict[str, Any]]:
        """Return the extenders of a scheduler's configuration, with a certificate of its own in the folder."""
        write_certificate(self.stage.kubeconfig, NAME, folder)
        url = f"https://{self.replica.address}:{self.replica.port}"
        return Wiring(scores=True).entries(Extender(url, self.replica.process.pid, folder))

    def outcomes(self) -> Pairs:
        """Return what was published of outcomes."""
        return {key: pair for content in self._contents() for key, pair in (pairs_in(content) or {}).items()}

    def demands(self) -> Demands:
        """Return what was published of requests."""
        return {key: amounts for content in self._contents() for key, amounts in demands_in(content).items()}

    def _contents(self) -> Iterator[Any]:
        for config_map in self.stage.api.items(_CONFIG_MAPS, labelSelector=LABEL):
            state = decode(config_map)
            if state is not None and not state.document.fault:
                yield state.document.value


@contextmanager
def operator_running(stage: Stage) -> Iterator[LearningOperator]:
    """Run the operator with one replica."""
    with replicas_running(stage.api, stage.kubeconfig, 1) as (replica,):
        yield LearningOperator(stage, replica)
