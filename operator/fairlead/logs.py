"""Logging: one line per event, as JSON for machines or as text for people. TRACE is below DEBUG."""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Final, Literal, TextIO

LogFormat = Literal["json", "console"]
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
    """Replacement for an exception whose message may contain values of pods or nodes: keeps its type and traceback."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(f"{type(fault).__name__}; its message is left out, since it may contain values")
        self.__traceback__ = fault.__traceback__


def level_of(environment: Mapping[str, str]) -> str:
    """Return the level in LOG_LEVEL. Raises ValueError."""
    level = environment.get("LOG_LEVEL", "INFO").upper()
    if level not in LEVELS:
        raise ValueError(f"LOG_LEVEL is {level!r}; it must be one of {', '.join(LEVELS)}")
    return level


def set_up(level: str, form: LogFormat, stream: TextIO | None = None) -> None:
    """Send all logs of the process to a stream, stderr by default."""
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
    """Limit of ten lines a minute per kind of event; the next line says how many were suppressed.

    Callers use few different kinds.
    """

    clock: Callable[[], float] = monotonic
    _kinds: dict[str, tuple[float, int]] = field(default_factory=dict)  # since when, and how often since then

    def allow(self, kind: str) -> dict[str, int] | None:
        """Return the fields to add to a line of this kind; None to suppress the line."""
        now, suppressed = self.clock(), 0
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= _WINDOW_S:
            suppressed, since, count = max(0, count - _LINES), now, 0
        self._kinds[kind] = since, count + 1
        if count >= _LINES:
            return None
        return {"suppressed": suppressed} if suppressed else {}


class RateLimitFilter(logging.Filter):
    """Rate limit for the logger of a library, whose errors clients can provoke."""

    def __init__(self) -> None:
        super().__init__()
        self._limiter = RateLimiter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line."""
        more = self._limiter.allow(record.levelname)
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
        line = f"{_time(record)} {record.levelname:<7} {printable(record.getMessage())}{extras}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _on_one_line(value: object) -> str:
    """Quote a value, so that text from clients cannot imitate a log line."""
    text = printable(str(value))
    return json.dumps(text, ensure_ascii=False) if not text or " " in text or '"' in text else text


def printable(text: str) -> str:
    """Return a text with all characters escaped that are not printable, such as line ends and control characters."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
