"""Whatever passes is selected: policies by chance, and what would be found if a bound were wrong."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fairlead.policy.affinity import node_affinity
from fairlead.policy.symbolic.label_sets import EVERY, Terms
from support.examples import MANY
from support.policy.affinities import Affinities, Unsound

Bounds = tuple[Terms, Terms]
UNTIL_FOUND = 3_000


def test_what_passes_is_selected_and_where_all_is_said_nothing_else() -> None:
    affinities = Affinities(Random("selected"))  # noqa: S311
    affinities.run(10 * MANY)
    assert all(affinities.seen[one] > MANY // 10 for one in ("exact", "wider", "nothing", "pods with affinity"))


MUTATIONS: dict[str, tuple[str, Callable[[Bounds], Bounds]]] = {
    "possibly true": ("possibly", lambda bounds: ((), bounds[1])),
    "possibly false": ("possibly", lambda bounds: (bounds[0], ())),
    "surely true": ("surely", lambda bounds: (EVERY, bounds[1])),
    "surely false": ("surely", lambda bounds: (bounds[0], EVERY)),
}


@pytest.mark.parametrize(("kind", "mutate"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_wrong_bound_is_found(kind: str, mutate: Callable[[Bounds], Bounds], monkeypatch: pytest.MonkeyPatch) -> None:
    sets: Any = node_affinity._Sets
    unsaid = sets._unsaid

    def mutated(self: Any, *args: Any) -> Bounds:
        bounds: Bounds = unsaid(self, *args)
        return mutate(bounds) if self.kind == kind else bounds

    monkeypatch.setattr(sets, "_unsaid", mutated)
    with pytest.raises(Unsound, match="passes for"):
        Affinities(Random("mutated")).run(UNTIL_FOUND)  # noqa: S311
