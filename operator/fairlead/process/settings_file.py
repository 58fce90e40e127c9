"""File with the operator's settings, which is polled, because a mounted ConfigMap changes without a notice."""

from dataclasses import dataclass, field
from pathlib import Path

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import OperatorSettings, parse_settings


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


def loaded_settings(path: Path | None) -> SettingsFile:
    """Return the file with its settings. Raises SettingsError, which names the file."""
    file = SettingsFile(path)
    try:
        file.reload()
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return file
