"""A case with a network between replicas and the API server: requests are lost, late, or answered by nobody."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.grants.ledger import Ledger
from support.grants.api_server import ApiServer
from support.grants.replica import Sent
from support.interleavings import PromiseBrokenError


class NetworkCase:
    """Interleaving of what replicas do, and of what becomes of their requests."""

    server: ApiServer
    replicas: list[Any]
    """Replicas of the kind that the case is about."""

    def __init__(self, setup: int, trace: list[str] | None = None) -> None:
        self.number, self._trace = setup, trace
        self.sent: list[Sent] = []
        self.seen = Counter[str]()

    def draw(self, below: int) -> int:
        """Take a number from what is left of this step's number."""
        self.number, found = divmod(self.number, below)
        return found

    def one_of(self, among: Sequence[Any]) -> Any:
        return among[self.draw(len(among))]

    def tell(self, text: Callable[[], str]) -> None:
        if self._trace is not None:
            self._trace.append(text())

    def _on_its_way(self, *, carried_out: bool | None = None) -> Sent | None:
        among = [one for one in self.sent if carried_out is None or one.carried_out is carried_out]
        return among[self.draw(len(among))] if among else None

    def serve(self) -> None:
        """Carry out and answer a request, or answer one that was carried out before."""
        if (one := self._on_its_way()) is None:
            return
        self.sent.remove(one)
        if not one.carried_out:
            self._carry_out(one, "")
        self.tell(lambda: f"{one.owner.name} hears of its {one.verb}: {outcome_line(one.outcome)}")
        one.answer(one.outcome)

    def land(self) -> None:
        """Carry out a request whose answer is on its way for longer, or has nobody to hear it."""
        if (one := self._on_its_way(carried_out=False)) is None:
            return
        if one.answered:
            self.sent.remove(one)
        self._carry_out(one, ", and the answer takes its time")

    def time_out(self) -> None:
        if (one := self._on_its_way()) is None or one.answered:
            return
        one.give_up()
        if one.carried_out:
            self.sent.remove(one)
        self.seen["timed out"] += 1
        self.tell(lambda: f"times out: {one}")

    def lose(self) -> None:
        if (one := self._on_its_way(carried_out=False)) is None:
            return
        self.sent.remove(one)
        one.give_up()
        self.tell(lambda: f"is lost: {one}")

    def _carry_out(self, one: Sent, how: str) -> None:
        self.tell(lambda: f"{one}{how}")
        one.carry_out(self.server)
        self.seen[f"{one.verb} {type(one.outcome).__name__}"] += 1

    def check_replicas(self) -> None:
        for one in self.replicas:
            if one.loop.errors:
                raise PromiseBrokenError(f"{one.name}: {one.loop.errors[0]}")
            for task in one.tasks():
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error


def outcome_line(outcome: object) -> str:
    """Return an outcome in a line."""
    if isinstance(outcome, Ledger):
        return f"{outcome.subject} at {outcome.rv}: {outcome.entries}"
    return str(outcome)
