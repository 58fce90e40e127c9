"""The operator's settings, from a file that is read again: a ConfigMap that is mounted tells nobody of changes."""

from dataclasses import dataclass, field
from pathlib import Path

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import OperatorSettings, parse_settings


class SettingsError(Exception):
    """The file cannot be used; says why."""


@dataclass(slots=True)
class SettingsFile:
    """What it holds; while it cannot be used, what it held when it last could be."""

    path: Path | None
    """None: the defaults of everything."""
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    _text: str = ""

    def reload(self) -> bool:
        """Read it; whether there are other settings now. Raises SettingsError."""
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
