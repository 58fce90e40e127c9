"""Values of the chart, from the file of an option."""

import re
from pathlib import Path
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.cli.console.exits import CommandError
from fairlead.render.operator_settings import ChartValues, parse_values

_HELMS_TITLE: Final = re.compile(r"\A(?:USER-SUPPLIED|COMPUTED) VALUES:\s*\n")
"""First line of `helm get values` without `-o yaml`."""


def read_values(file: Path | None) -> ChartValues:
    """Return the values of a file; without one, the chart's defaults. Raises CommandError."""
    try:
        return parse_values("" if file is None else _HELMS_TITLE.sub("\n", read_text(file), count=1))
    except InvalidObjectError as error:
        raise CommandError(f"{file}: {'; '.join(str(error).splitlines())}") from None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises CommandError."""
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "is not text"
        raise CommandError(f"{file}: {said}") from None
