"""Which strategies are found, and what the author of a wrong module is told."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fairlead.api.params import Params
from fairlead.strategies import StrategyError, builtin, installed, template
from fairlead.strategies.contract import Filter, Reads, Strategy, Use
from fairlead.strategies.registry import strategies_of

_STRATEGY = """
from fairlead.api.params import Params
from fairlead.strategies.contract import Reads, Score, Strategy, Use
STRATEGY = Strategy(
    name="{name}",
    score=Use(Params, lambda _: Score(reads=Reads(), for_pod=lambda pod: lambda node, now, trace=None: 1.0)),
)
"""

Package = Callable[..., ModuleType]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    def made(**modules: str) -> ModuleType:
        for name, text in {"__init__": "", **modules}.items():
            (tmp_path / "lab").mkdir(exist_ok=True)
            (tmp_path / "lab" / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return __import__("lab")

    yield made
    for name in [name for name in sys.modules if name.split(".")[0] == "lab"]:
        del sys.modules[name]


def test_node_readiness_is_installed() -> None:
    assert "nodeReadiness" in {strategy.name for strategy in installed()}
    assert installed() == installed(builtin)
    assert template.STRATEGY.name not in {strategy.name for strategy in installed()}


def test_strategies_are_sorted_by_name_and_other_modules_are_passed_by(package: Package) -> None:
    lab = package(a=_STRATEGY.format(name="zebra"), b=_STRATEGY.format(name="ant"), c="PARAMS = 1")
    assert [strategy.name for strategy in installed(lab)] == ["ant", "zebra"]


def test_two_strategies_of_one_name_are_refused_with_both_modules(package: Package) -> None:
    lab = package(a=_STRATEGY.format(name="ant"), b=_STRATEGY.format(name="ant"))
    with pytest.raises(StrategyError, match=r"lab/b\.py: .* called ant, as the one of .*lab/a\.py is"):
        installed(lab)


def test_a_module_whose_strategy_is_something_else_is_refused(package: Package) -> None:
    with pytest.raises(StrategyError, match=r"lab/a\.py: STRATEGY must be a Strategy; it is 'ant'"):
        installed(package(a="STRATEGY = 'ant'"))


def test_a_module_that_does_not_import_says_so_itself(package: Package) -> None:
    with pytest.raises(ZeroDivisionError):
        installed(package(a="1 / 0"))


class One(Params):
    """One kind of parameters."""


class Other(Params):
    """Another."""


def _passes(_: One) -> Filter:
    return Filter(reads=Reads(), for_pod=lambda _pod: None, reasons=())  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("name", ["NodeReadiness", "node_readiness", "node-readiness", "", "1st", "n" * 64])
def test_a_name_that_is_no_field_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="like nodeReadiness"):
        Strategy(name=name, filter=Use(One, _passes))


def test_a_name_that_is_taken_is_refused(package: Package) -> None:
    package(a=_STRATEGY.format(name="ant"))
    module = __import__("lab.a").a
    assert [one.name for one in strategies_of([module], taken=["bee"])] == ["ant"]
    with pytest.raises(StrategyError, match=r"lab/a\.py: its strategy cannot be called ant, as a built-in one is"):
        strategies_of([module], taken=["ant"])


def test_what_is_no_use_is_refused() -> None:
    with pytest.raises(TypeError, match="filter and score of the strategy idle are of the class Use, not <function"):
        Strategy(name="idle", filter=_passes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the parameters of a strategy are a class of Params, not <class 'dict'>"):
        Use(dict, _passes)  # type: ignore[arg-type,type-var]


def test_a_strategy_without_any_use_is_refused() -> None:
    with pytest.raises(ValueError, match="neither filters nor scores"):
        Strategy(name="idle")


def test_parameters_of_another_strategy_are_refused() -> None:
    use = Use(One, _passes)
    use.compile(One())
    with pytest.raises(TypeError, match="of type Other, not One"):
        use.compile(Other())
