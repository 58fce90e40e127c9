"""Logs: one line a transition, as JSON for machines or as text for people. TRACE is below DEBUG."""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Final, Literal, TextIO

Format = Literal["json", "console"]
TRACE: Final = 5
LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
}
_WINDOW_S: Final = 60.0
_LINES: Final = 10
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class FaultError(Exception):
    """Stands for an exception whose words may hold values of facts: its type and its traceback are told."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(f"{type(fault).__name__}; its words are left out, since they may hold values")
        self.__traceback__ = fault.__traceback__


def level_of(environment: Mapping[str, str]) -> str:
    """What LOG_LEVEL asks for. Raises ValueError."""
    level = environment.get("LOG_LEVEL", "INFO").upper()
    if level not in LEVELS:
        raise ValueError(f"LOG_LEVEL is {level!r}; it must be one of {', '.join(LEVELS)}")
    return level


def set_up(level: str, form: Format, stream: TextIO | None = None) -> None:
    """Send the logs of the whole process there."""
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Console())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("fairlead").setLevel(LEVELS[level])
    if LEVELS[level] <= logging.DEBUG:
        root.setLevel(logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.INFO)


@dataclass(slots=True)
class RateLimiter:
    """Of what may happen again and again, ten lines a minute are written; the next one says how many were not.

    Whoever asks sees to it that there are few kinds.
    """

    clock: Callable[[], float] = monotonic
    _kinds: dict[str, tuple[float, int]] = field(default_factory=dict)  # since when, and how often since then

    def about(self, kind: str) -> dict[str, int] | None:
        """What to add to a line about it; None: write none."""
        now, unsaid = self.clock(), 0
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= _WINDOW_S:
            unsaid, since, count = max(0, count - _LINES), now, 0
        self._kinds[kind] = since, count + 1
        if count >= _LINES:
            return None
        return {"unsaid": unsaid} if unsaid else {}


class RateLimitFilter(logging.Filter):
    """The same for a logger of others: errors that its callers provoke."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = RateLimiter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        more = self._seldom.about(record.levelname)
        if more:
            record.__dict__.update(more)
        return more is not None


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _OWN}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Console(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {key}={_on_one_line(value)}" for key, value in _extras(record).items())
        line = f"{_time(record)} {record.levelname:<7} {_printable(record.getMessage())}{extras}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _on_one_line(value: object) -> str:
    """What callers say cannot look like a line of ours."""
    text = _printable(str(value))
    return json.dumps(text, ensure_ascii=False) if not text or " " in text or '"' in text else text


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
