"""Number of examples of properties whose input space is large: few while code is written, many in CI."""

from typing import Final

from hypothesis import settings

CI: Final = "ci"
"""Profile of `make test`: `pytest --hypothesis-profile ci`."""
MANY: Final = 400 if settings.get_current_profile_name() == CI else 50
