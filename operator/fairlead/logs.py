"""Logs: one line a transition, as JSON for machines or as text for people. TRACE is below DEBUG."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
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
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


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
        return json.dumps(line, default=str, ensure_ascii=False)


class _Console(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {key}={value}" for key, value in _extras(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.getMessage()}{extras}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
