"""Whatever passes is selected: policies by chance, and what would be found if a bound were wrong."""

from collections.abc import Iterator
from random import Random

import pytest

from fairlead.cel.check import BOOL, check
from fairlead.policy.affinity import node_affinity
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.node_affinity import node_bound
from fairlead.policy.affinity.node_terms import written_terms
from fairlead.policy.affinity.published_pods import REQUIRED
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.symbolic.label_sets import EVERY, Terms
from fairlead.policy.views.pod_view import PodView
from support.examples import MANY
from support.policy import node
from support.policy.affinities import ENVIRONMENT, Affinities, Unsound, outcome, selected_by_pod

UNTIL_FOUND = 3_000
_L = "node.metadata.labels"


def test_what_passes_is_selected_and_where_all_is_said_nothing_else() -> None:
    affinities = Affinities(Random("selected"))  # noqa: S311
    affinities.run(10 * MANY)
    assert all(affinities.seen[one] > MANY // 10 for one in ("exact", "wider", "nothing", "pods with affinity"))


MUTATIONS = {
    "possibly true": ("_POSSIBLY", True, ()),
    "possibly false": ("_POSSIBLY", False, ()),
    "surely true": ("_SURELY", True, EVERY),
    "surely false": ("_SURELY", False, EVERY),
}


@pytest.mark.parametrize(("bounds", "value", "wrong"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_wrong_bound_is_found(bounds: str, value: bool, wrong: Terms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(getattr(node_affinity, bounds), value, wrong)
    with pytest.raises(Unsound, match="passes for"):
        Affinities(Random("mutated")).run(UNTIL_FOUND)  # noqa: S311


_ANY = " || ".join(f"('a{at}' in {_L} && 'b{at}' in {_L})" for at in range(20))
_ALL = " && ".join(f"('a{at}' in {_L} || 'b{at}' in {_L})" for at in range(20))
_TEN = " || ".join(f"('a{at}' in {_L} && 'b{at}' in {_L})" for at in range(10))
_LARGE = (
    _ANY,
    _ALL,
    f"({_ANY}) && 'c' in {_L}",
    f"({_ALL}) || 'c' in {_L}",
    f"({_ANY}) ? 'c' in {_L} : 'd' in {_L}",
    _TEN,
)


def _labelled() -> Iterator[dict[str, str]]:
    """Yield the labels of nodes of which some are in one alternative only."""
    every = [f"{letter}{at}" for at in range(20) for letter in "ab"]
    for keys in ([], every, every[::2], *([f"a{at}", f"b{at}"] for at in range(20)), *(every[:at] for at in (5, 30))):
        for further in ([], ["c"], ["d"]):
            yield dict.fromkeys([*keys, *further], "")


@pytest.mark.parametrize("rejects_on_error", [True, False], ids=["Reject", "Pass"])
@pytest.mark.parametrize("form", ["{}", "!({})"])
@pytest.mark.parametrize("large", _LARGE, ids=["any", "all", "any and", "all or", "choice", "ten"])
def test_an_expression_that_is_too_large_still_selects_what_passes(
    large: str, form: str, rejects_on_error: bool
) -> None:
    expression = CompiledExpression(check(form.format(large), ENVIRONMENT, BOOL))
    found = node_bound(expression, Vocabulary(), rejects_on_error=rejects_on_error)
    terms = [written for term in found.terms for written in written_terms(term)]
    selects = selected_by_pod({"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}})
    missed = [
        labels
        for labels in _labelled()
        if outcome(expression, PodView(None), node(labels=labels))
        and {} not in terms
        and not (terms and selects(labels, "n"))
    ]
    assert missed == []
