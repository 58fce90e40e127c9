"""Every installed strategy keeps the contract, and the template. One more needs samples of its parameters, no more."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies import installed, template
from fairlead.strategies.contract import Use
from support.strategies.bounds import Edge, edges
from support.strategies.contract import keeps_contract
from support.strategies.generated import scenes
from support.strategies.samples import SAMPLES, SHARES

_USES: dict[str, Use[Any]] = {
    f"{strategy.name} {kind}": use
    for strategy in (*installed(), template.STRATEGY)
    for kind, use in (("filter", strategy.filter), ("score", strategy.score))
    if use is not None
}
_EDGES = {
    f"{name}: {'.'.join(map(str, edge.path))} {edge.what}": (use, edge)
    for name, use in _USES.items()
    for edge in edges(use.params, SAMPLES[name][0])
}


def test_every_use_of_a_strategy_has_a_sample_and_no_other_has() -> None:
    assert set(SAMPLES) == set(_USES)


@pytest.mark.parametrize("name", _USES)
def test_a_strategy_keeps_its_contract(name: str) -> None:
    use = _USES[name]
    models = [use.params.model_validate(sample) for sample in SAMPLES[name]]
    # made once, because Hypothesis looks at each that it has not seen before for as long as it draws from it
    generated = [scenes(params, use.compile(params, SHARES).reads) for params in models]

    @settings(max_examples=150, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        at = data.draw(st.sampled_from(range(len(models))))
        keeps_contract(use, models[at], data.draw(generated[at]))

    holds()


@pytest.mark.parametrize(("use", "edge"), _EDGES.values(), ids=_EDGES)
def test_parameters_are_accepted_up_to_their_bounds_and_refused_beyond(use: Use[Any], edge: Edge) -> None:
    if edge.fits:
        results = [_faults(use, params) for params in (edge.params, *edge.rivals)]
        if edge.leads:
            results = [[path for path in faults if path[: len(edge.path)] == edge.path] for faults in results]
        assert [] in results, results
        return
    faults = _faults(use, edge.params)
    assert any(path[: len(edge.path)] == edge.path for path in faults), faults


def _faults(use: Use[Any], params: object) -> list[tuple[str | int, ...]]:
    try:
        use.params.model_validate(params)
    except ValidationError as refused:
        return [fault["loc"] for fault in refused.errors()]
    return []
