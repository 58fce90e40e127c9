"""Device shares of a policy: their numbers of devices, and the filters that they bring."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.devices import DeviceShare
from fairlead.api.rules import FilterSpec
from fairlead.cel.check import INT
from fairlead.cel.engine.environment import CARDS
from fairlead.cooperative import Steps
from fairlead.policy.compile.expression import CompiledExpression, as_reads
from fairlead.policy.compile.expression_compiler import ExpressionCompiler
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.model import FILTER_PREFIX, DeviceShareRule, FilterRule
from fairlead.policy.views.faults import RAISED
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.device_rules import device_filter
from fairlead.strategies.facts import PodFacts, Unknown
from fairlead.strategies.reads import Reads

_STRATEGY: Final = "deviceShare"


def device_shares(entries: Sequence[DeviceShare], expressions: ExpressionCompiler) -> Steps[list[DeviceShareRule]]:
    """Compile the entries of `binding.deviceShare`; faults are added to those of the expressions."""
    made = list[DeviceShareRule]()
    for at, entry in enumerate(entries):
        if entry.cards is None:
            made.append(DeviceShareRule(CompiledShare(entry=entry, cards=lambda _: 1, reads=Reads())))
            continue
        path = ("spec", "binding", "deviceShare", at, "cards")
        cards = yield from expressions.compile(path, entry.cards, CARDS, INT)
        if cards is not None:
            number, reads = _number_of(entry.name, cards), as_reads(cards.paths)
            made.append(DeviceShareRule(CompiledShare(entry=entry, cards=number, reads=reads), cards))
    return made


def device_filters(shares: Iterable[DeviceShareRule], filters: Sequence[FilterSpec]) -> Iterator[FilterRule]:
    """Yield the filters of the shares that no filter of the policy names, as one in shadow does not decide."""
    deciding = [one.strategy for one in filters if one.strategy and one.mode != "Shadow"]
    named = {getattr(params, "name", "") for strategy, params in deciding if strategy == _STRATEGY}
    for one in shares:
        if one.name not in named:
            made = device_filter(one.share)
            yield FilterRule(
                f"{FILTER_PREFIX}{one.name}", made, rejects_on_error=True, resolvable=True, resolvable_per_verdict=True
            )


def _number_of(name: str, expression: CompiledExpression) -> Callable[[PodFacts], int | Unknown]:
    def cards(pod: PodFacts) -> int | Unknown:
        try:
            found: int = expression.for_pod(pod)(None, 0)
        except RAISED as error:
            return error_verdict(error, rule=f"cards of {name}", written=expression.written)
        return found

    return cards
