"""Strategy `kubeRL`: prefers nodes on which pods of the same type have run without failing.

What is learned is in `fairlead.learned`: outcomes of pods by type and node, which fade with time. The score of a node
is the mean reward of its outcomes in whole points, in which `priorPercent` counts as one outcome that never ages.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from fairlead.api.params import Params, PodText
from fairlead.api.values import Duration, within
from fairlead.learned.pair import score, value
from fairlead.strategies.contract import (
    CompiledTexts,
    NodeFacts,
    NodeScorer,
    OutcomesRead,
    PodFacts,
    Reads,
    Score,
    Strategy,
    Timed,
    Trace,
    Unknown,
    Use,
    Value,
    usual_type,
)
from fairlead.time_units import SECOND_NS


class KubeRLScore(Params):
    """Prefer nodes on which pods of the same type have run without failing."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    type: PodText | None = None
    """CEL that gives the type of a pod, a string of at most 128 characters; it can read pod and namespaceObject. Pods
    of one type learn together. A pod for which it is empty gets no score. If not set: the namespace, a slash, and the
    first of the labels podtype, app and name, else the kind and name of the pod's controller."""
    settle: Annotated[Duration, within("10s", "24h")] = Duration("10m")
    """Time after which a pod that runs without a failure is a success, and a container that fails counts as half a
    failure. A pod none of whose containers starts within it is a failure. 10m when absent."""
    prior_percent: Annotated[int, Field(ge=0, le=100)] = 100
    """Score of a node without outcomes. 100 when absent, so that each node is tried."""
    half_life: Annotated[Duration, within("10m", "720h")] = Duration("6h")
    """Time after which an outcome weighs half. 6h when absent: a node on which a pod failed every 5 minutes comes back
    to half of the prior in about 40 hours."""
    max_types: Annotated[int, Field(ge=1, le=1000)] = 100
    """Number of types that are kept. Beyond it, the least recently updated one of the namespace with most types is
    forgotten. 100 when absent."""


def _score(params: KubeRLScore, texts: CompiledTexts) -> Score:
    prior, half_life_s = params.prior_percent, params.half_life.seconds
    outcomes = OutcomesRead(
        type_of=texts.get("type", usual_type),
        type_text=params.type or "",
        settle_s=params.settle.seconds,
        half_life_s=half_life_s,
        prior=prior / 100,
        types=params.max_types,
    )

    def one(node: NodeFacts, now: int, trace: Trace | None = None) -> Value:
        learned = node.learned
        if isinstance(learned, Unknown):
            return learned
        found = score(learned.sums, prior, half_life_s, now)
        if trace is not None:
            sums, now_s = learned.sums, now / SECOND_NS
            trace.note(
                type=learned.type,
                value=value(sums, prior / 100, half_life_s, now_s),
                rewards=sums.rewards,
                outcomes=sums.weight,
                age_s=max(0.0, now_s - sums.at) if sums.at else None,
            )
        return float(found.points) if found.until is None else Timed(float(found.points), found.until)

    def for_pod(_pod: PodFacts) -> NodeScorer[NodeFacts]:
        return one

    return Score(reads=Reads(learned=frozenset({outcomes}), now=True), for_pod=for_pod)


STRATEGY = Strategy(name="kubeRL", score=Use.of_texts(KubeRLScore, _score))
