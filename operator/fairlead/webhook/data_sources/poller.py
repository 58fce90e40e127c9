"""Poller of measured values: when each poll is due, and what is published to the nodes.

A poll is asked for the first time at once. From then on all polls of one interval are asked together. What is answered
promptly is published together, and each straggler when it comes, so that a source that hangs keeps back no values of
others. A publication takes turns with calls, and is seen in one step. A failed poll changes no value: values keep their
times, and grow stale by these.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import Poll, PollError, Reading
from fairlead.webhook.data_sources.loop_turns import LoopTurns

LOG: Final = logging.getLogger(__name__)
_TOGETHER_S: Final = 0.05
_NODES_S: Final = 1.0
"""How soon a node that has joined gets what the last polls said of it."""
_RETRY_S: Final = 1.0
_PROMPT_S: Final = 0.5
"""How long answers are waited for before those that came are published together: each publication has its cost."""

PollOutcome = Reading | PollError


class Question(NamedTuple):
    """Question to one source, whose answer may serve several polls."""

    polls: Collection[Poll]
    outcomes: Coroutine[Any, Any, Mapping[Poll, PollOutcome]]
    """What each poll gave. One that is left out has no answer yet, and is soon asked again."""


class Sources(Protocol):
    """Sources of the values of polls."""

    def questions(self, ages: Mapping[Poll, int], /) -> Iterable[Question]:
        """Return the questions for polls, each with the greatest age of its values in seconds.

        Every poll that the sources know is in one question.
        """


class PollStatus(NamedTuple):
    """State of a poll, for the owner of a policy."""

    is_answered: bool = False
    """Whether it was asked at least once, with or without success."""
    succeeded_at: int | None = None
    """Time of the last success in nanoseconds."""
    error: str = ""
    """Why the last one failed; "" if it did not."""
    note: str = ""
    """Advice, such as why no value names a node."""
    failures: int = 0
    """Failed polls in all."""


_NEW: Final = PollStatus()


@dataclass(slots=True, eq=False)
class _Scheduled:
    greatest_age_s: int
    due: float
    wanted_at: float
    is_running: bool = False
    retry_s: float = _RETRY_S
    status: PollStatus = _NEW
    last: Reading | None = None


class Poller:
    """Polls for the data of all policies that serve."""

    def __init__(
        self,
        nodes: Nodes,
        sources: Sources,
        *,
        now: Callable[[], int],
        clock: Callable[[], float],
        is_synced: Callable[[], bool],
        turns: LoopTurns | None = None,
    ) -> None:
        """Begin once `is_synced`, when the nodes are known; `now` is the time of day in nanoseconds."""
        self._nodes, self._sources, self._now, self._clock, self._is_synced = nodes, sources, now, clock, is_synced
        self._turns = turns or LoopTurns()
        self._publishing = asyncio.Lock()
        self._polls: dict[Poll, _Scheduled] = {}
        self._phases: dict[int, float] = {}
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._begun: float | None = None

    @property
    def states(self) -> Mapping[Poll, PollStatus]:
        """Return the state of each poll."""
        return {poll: one.status for poll, one in self._polls.items()}

    def want(self, ages: Mapping[Poll, int]) -> None:
        """Set the polls, with the greatest age of their values in seconds; new ones are asked at once."""
        now = self._clock()
        for poll in self._polls.keys() - ages.keys():
            del self._polls[poll]
        for poll, greatest_age_s in ages.items():
            if (held := self._polls.get(poll)) is None:
                self._polls[poll] = _Scheduled(greatest_age_s, now, now)
            else:
                held.greatest_age_s = greatest_age_s
        self._progress.set()
        self._wake.set()

    def ask_now(self, polls: Collection[Poll]) -> None:
        """Ask for polls at once: what they read has changed."""
        for poll in polls:
            if (held := self._polls.get(poll)) is not None:
                held.due = self._clock()
        self._wake.set()

    @property
    def polled_for_s(self) -> float:
        """Return for how long there has been polling, in seconds."""
        return 0.0 if self._begun is None else self._clock() - self._begun

    def without_value(self) -> list[Poll]:
        """Return the polls that never succeeded."""
        return [poll for poll, one in self._polls.items() if one.status.succeeded_at is None]

    def awaits_values(self, within_s: float) -> bool:
        """Return whether the first success of a poll may still come: it is new, or polling has just begun."""
        since = inf if self._begun is None else self._begun
        waiting = (one for one in self._polls.values() if one.status.succeeded_at is None)
        return any(max(since, one.wanted_at) + within_s > self._clock() for one in waiting)

    async def first_values(self, within_s: float, polls: Collection[Poll]) -> None:
        """Wait for the first success of each of these polls, as long as it is new.

        It returns at once while the nodes are not known. A failure ends no waiting, because it is tried again: a server
        may have been away for a moment only.
        """
        if not self._is_synced():
            return
        ends = {
            poll: (one, left_s)
            for poll in polls
            if (one := self._polls.get(poll)) is not None and (left_s := one.wanted_at + within_s - self._clock()) > 0
        }

        def missing() -> list[Poll]:
            return [
                poll
                for poll, (one, _) in ends.items()
                if one.status.succeeded_at is None and self._polls.get(poll) is one
            ]

        try:
            async with asyncio.timeout(max((left_s for _, left_s in ends.values()), default=0)):
                while missing():
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            LOG.warning("data.unanswered", extra={"polls": len(missing())})

    async def run(self) -> NoReturn:
        """Poll until cancelled."""
        async with asyncio.TaskGroup() as group:
            joined: asyncio.Task[None] | None = None
            while True:
                self._wake.clear()
                if not self._is_synced():
                    await asyncio.sleep(_TOGETHER_S)
                    continue
                if self._nodes.has_joined and (joined is None or joined.done()):
                    joined = group.create_task(self.publish_last())
                now = self._clock()
                self._begun = now if self._begun is None else self._begun
                due = {poll: one for poll, one in self._polls.items() if one.due <= now and not one.is_running}
                if due:
                    for one in due.values():
                        one.is_running, one.due = True, inf
                    group.create_task(self._batch(due))
                waits = [one.due - now for one in self._polls.values() if not one.is_running]
                delay_s = max(_TOGETHER_S, min([_NODES_S, *waits])) if self._polls else None
                try:
                    async with asyncio.timeout(delay_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _batch(self, due: Mapping[Poll, _Scheduled]) -> None:
        """Ask for several polls, and finish those that answer promptly together, each of the others by itself."""
        begun = self._clock()
        questions = self._sources.questions({poll: one.greatest_age_s for poll, one in due.items()})
        async with asyncio.TaskGroup() as group:
            waiting = {group.create_task(_outcomes(one)) for one in questions}
            done, waiting = await asyncio.wait(waiting, timeout=_PROMPT_S)
            while done or waiting:
                if done:
                    found = {poll: outcome for one in done for poll, outcome in one.result().items()}
                    await self._finish(found, due, begun)
                if not waiting:
                    return
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    async def _finish(
        self, outcomes: Mapping[Poll, PollOutcome | None], due: Mapping[Poll, _Scheduled], begun: float
    ) -> None:
        """Publish what came, and schedule its polls again."""
        readings = {poll: one for poll, one in outcomes.items() if isinstance(one, Reading)}
        kept = {poll: one for poll, one in readings.items() if self._polls.get(poll) is due[poll]}
        if kept:
            async with self._publishing:
                await self._turns.run(self._nodes.publication(kept, self._now()))
        for poll, outcome in outcomes.items():
            one = due[poll]
            if outcome is None:
                following = self._clock() + _RETRY_S
            else:
                self._note(poll, one, outcome)
                following = self._next(poll, one, begun)
            # What was changed while it was asked is due at once, and stays so.
            one.is_running, one.due = False, min(one.due, following)
        self._progress.set()
        self._wake.set()

    def _note(self, poll: Poll, scheduled: _Scheduled, outcome: PollOutcome) -> None:
        before = scheduled.status
        if isinstance(outcome, Reading):
            scheduled.status = PollStatus(
                is_answered=True, succeeded_at=self._now(), note=outcome.note, failures=before.failures
            )
            scheduled.last, scheduled.retry_s = self._with_earlier(poll, outcome, scheduled.last), _RETRY_S
            if before.error:
                LOG.info("data.poll_recovered", extra={"poll": poll.name})
            if outcome.note and outcome.note != before.note:
                LOG.info("data.poll_note", extra={"poll": poll.name, "hint": outcome.note})
            return
        scheduled.status = before._replace(is_answered=True, error=str(outcome), failures=before.failures + 1)
        if scheduled.status.error != before.error:
            LOG.warning("data.poll_failed", extra={"poll": poll.name, "error": str(outcome)})

    def _with_earlier(self, poll: Poll, reading: Reading, before: Reading | None) -> Reading:
        """Return a reading with the values before it of nodes that it does not name, unless it is whole."""
        if before is None or poll.is_whole:
            return reading
        left = before.values.keys() - reading.values.keys() - reading.several - reading.no_number
        names = [name for name in left if name in self._nodes.slots]
        if not names:
            return reading
        values = {**{name: before.values[name] for name in names}, **reading.values}
        told = ((name, (reading if name in reading.values else before).time_of(name)) for name in values)
        return reading._replace(values=values, times={name: at for name, at in told if at is not None})

    def _next(self, poll: Poll, scheduled: _Scheduled, begun: float) -> float:
        """Return when a poll is due again: with all others of its interval, or soon if it never succeeded."""
        interval_s = poll.interval_s
        phase = self._phases.setdefault(interval_s, begun)
        now = self._clock()
        following = phase + ((now - phase) // interval_s + 1) * interval_s
        if scheduled.status.succeeded_at is None and scheduled.status.error:
            retry = now + scheduled.retry_s
            scheduled.retry_s = min(scheduled.retry_s * 2, interval_s)
            return min(retry, following)
        return following

    async def publish_last(self) -> None:
        """Give what the last polls said to nodes that have joined, and to new entries of known polls."""
        async with self._publishing:
            names = self._nodes.take_joined()
            readings = {poll: one.last for poll, one in self._polls.items() if one.last is not None}
            if readings:
                await self._turns.run(self._nodes.publication(readings, self._now(), names))


async def _outcomes(question: Question) -> Mapping[Poll, PollOutcome | None]:
    """Return what each poll of a question gave; a fault of ours must not end the other questions."""
    try:
        found = await question.outcomes
        return {poll: found.get(poll) for poll in question.polls}
    except Exception as error:
        LOG.exception("data.poll_fault")
        failed = PollError(f"an internal fault ({type(error).__name__}); the log of the operator says where")
        return dict.fromkeys(question.polls, failed)
