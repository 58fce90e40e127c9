"""Values of the chart, from the file of an option."""

from pathlib import Path

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import ChartValues, parse_values


class UnusableFileError(Exception):
    """File of an option that cannot be read or used; the message names it."""


def read_values(file: Path | None) -> ChartValues:
    """Return the values of a file; without one, the chart's defaults. Raises UnusableFileError."""
    try:
        return parse_values("" if file is None else read_text(file))
    except InvalidObjectError as error:
        raise UnusableFileError(f"{file}: {'; '.join(str(error).splitlines())}") from None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises UnusableFileError."""
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "is not text"
        raise UnusableFileError(f"{file}: {said}") from None
