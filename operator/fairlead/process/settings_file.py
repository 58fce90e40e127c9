"""File with the operator's settings, which is polled, because a mounted ConfigMap changes without a notice."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import OperatorSettings, parse_settings

LOG: Final = logging.getLogger(__name__)
SETTINGS_S: Final = 2.0
"""Pause between two looks at the file."""


class SettingsError(Exception):
    """Error in the settings file."""


@dataclass(slots=True)
class SettingsFile:
    """Settings file; while it is unusable, the last usable settings stay."""

    path: Path | None
    """None for all defaults."""
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    _text: str = ""

    def reload(self) -> bool:
        """Read the file; return whether the settings changed. Raises SettingsError."""
        if self.path is None:
            return False
        try:
            text = self.path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if text == self._text:
            return False
        try:
            settings = parse_settings(text)
        except InvalidObjectError as error:
            raise SettingsError("; ".join(str(error).splitlines())) from None
        before, self.settings, self._text = self.settings, settings, text
        return settings != before


def load_settings(path: Path | None) -> SettingsFile:
    """Return the file with its settings. Raises SettingsError, which names the file."""
    file = SettingsFile(path)
    try:
        file.reload()
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return file


class SettingsReloader:
    """Reloads the settings file, and keeps what is wrong with it."""

    def __init__(self, file: SettingsFile, changed: Callable[[], None]) -> None:
        """Call `changed` each time that the settings changed."""
        self._file, self._changed = file, changed
        self.faults: Mapping[str, str] = {}
        """Error in the file, by its name."""

    async def reload(self) -> None:
        """Reload the file."""
        path = str(self._file.path)
        try:
            if self._file.reload():
                LOG.info("settings.loaded")
                self._changed()
        except SettingsError as error:
            if self.faults.get(path) != str(error):
                LOG.warning("settings.invalid", extra={"error": str(error)})
            self.faults = {path: str(error)}
        else:
            self.faults = {}
