"""Every installed strategy keeps the contract. Adding one asks for a sample of its parameters, nothing else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies import installed
from fairlead.strategies.contract import Strategy
from support.strategies.bounds import Edge, edges
from support.strategies.contract import keeps_contract
from support.strategies.generated import scenes
from support.strategies.samples import SAMPLES

_INSTALLED = {strategy.name: strategy for strategy in installed()}
_EDGES = {
    f"{name}: {'.'.join(map(str, edge.path))} {edge.what}": (strategy, edge)
    for name, strategy in _INSTALLED.items()
    for edge in edges(strategy.params, SAMPLES[name][0])
}


def test_every_strategy_has_a_sample_and_no_other_has() -> None:
    assert set(SAMPLES) == set(_INSTALLED)


@pytest.mark.parametrize("strategy", _INSTALLED.values(), ids=_INSTALLED)
def test_a_strategy_keeps_its_contract(strategy: Strategy) -> None:
    models = [strategy.params.model_validate(sample) for sample in SAMPLES[strategy.name]]

    @settings(max_examples=150, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        params = data.draw(st.sampled_from(models))
        keeps_contract(strategy, params, data.draw(scenes(params)))

    holds()


@pytest.mark.parametrize(("strategy", "edge"), _EDGES.values(), ids=_EDGES)
def test_parameters_are_accepted_up_to_their_bounds_and_refused_beyond(strategy: Strategy, edge: Edge) -> None:
    if edge.fits:
        results = [_faults(strategy, params) for params in (edge.params, *edge.rivals)]
        if edge.leads:
            results = [[path for path in faults if path[: len(edge.path)] == edge.path] for faults in results]
        assert [] in results, results
        return
    faults = _faults(strategy, edge.params)
    assert any(path[: len(edge.path)] == edge.path for path in faults), faults


def _faults(strategy: Strategy, params: object) -> list[tuple[str | int, ...]]:
    try:
        strategy.params.model_validate(params)
    except ValidationError as refused:
        return [fault["loc"] for fault in refused.errors()]
    return []
