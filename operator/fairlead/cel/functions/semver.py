"""Semantic versions, as in the Kubernetes CEL library: `1.37.1`, `1.38.0-rc.1+build`."""

import re
from typing import ClassVar, Final

from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import INT_MAX, UINT_MAX

VERSION_MAX: Final = 256
"""Characters of the longest version that is read."""

_NUMBER: Final = r"(0|[1-9][0-9]{0,19})"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]++(?:\.[0-9A-Za-z-]++)*+"
_TEXT: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?")
_LEADING_ZEROS: Final = re.compile(r"^0+(?=[0-9])")
_NUMBERS: Final = 3

Identifier = tuple[int, int, str]
"""Part of a pre-release: 0 and a number, or 1 and a text, which is later than any number."""


class Semver:
    """Semantic version. The build is not kept, since no function tells versions apart by it."""

    __slots__ = ("key",)

    cel_type: ClassVar[str] = "kubernetes.Semver"

    def __init__(self, major: int, minor: int, patch: int, prerelease: tuple[Identifier, ...] = ()) -> None:
        # The version itself comes after all of its pre-releases.
        self.key = (major, minor, patch, not prerelease, prerelease)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"semver({semver_text(self)!r})"


def parse_semver(text: str) -> Semver | None:
    """Read a version, or None if the text is not one."""
    match = _TEXT.fullmatch(text) if len(text) <= VERSION_MAX else None
    if match is None:
        return None
    major, minor, patch = map(int, match.group(1, 2, 3))
    if max(major, minor, patch) > INT_MAX:
        return None
    identifiers: list[Identifier] = []
    for part in match[4].split(".") if match[4] else ():
        if not part.isdecimal():
            identifiers.append((1, 0, part))
        elif (part[0] == "0" and part != "0") or int(part) > UINT_MAX:
            return None
        else:
            identifiers.append((0, int(part), ""))
    return Semver(major, minor, patch, tuple(identifiers))


def normalize_version(text: str) -> str:
    """Write a text as a version is written: without a leading `v` and leading zeros, and with all three numbers."""
    if len(text) > VERSION_MAX:
        return text
    parts = text.removeprefix("v").split(".", _NUMBERS - 1)
    if not any(sign in parts[-1] for sign in "+-"):
        parts += ["0"] * (_NUMBERS - len(parts))
    return ".".join(_LEADING_ZEROS.sub("", part) for part in parts)


def string_to_semver(text: str) -> Semver:
    """Read a version."""
    if (version := parse_semver(text)) is None:
        raise CelError(Kind.CONVERSION, "cannot convert string to version")
    return version


def string_bool_to_semver(text: str, normalize: bool) -> Semver:  # noqa: FBT001
    """Read a version that may be written with a `v`, leading zeros, or fewer numbers."""
    return string_to_semver(normalize_version(text) if normalize else text)


def is_semver_string(text: str) -> bool:
    """Return whether a text is a version."""
    return parse_semver(text) is not None


def is_semver_string_bool(text: str, normalize: bool) -> bool:  # noqa: FBT001
    """Return whether a text is a version that may be written with a `v`, leading zeros, or fewer numbers."""
    return parse_semver(normalize_version(text) if normalize else text) is not None


def semver_text(value: Semver) -> str:
    """Write a version without its build, the same for equal versions."""
    major, minor, patch, _, prerelease = value.key
    text = ".".join(word or str(number) for _, number, word in prerelease)
    return f"{major}.{minor}.{patch}-{text}" if text else f"{major}.{minor}.{patch}"


def major(value: Semver) -> int:
    """Return the first number."""
    return value.key[0]


def minor(value: Semver) -> int:
    """Return the second number."""
    return value.key[1]


def patch(value: Semver) -> int:
    """Return the third number."""
    return value.key[2]


def is_later(left: Semver, right: Semver) -> bool:
    """Return whether one is later than the other."""
    return left.key > right.key


def is_earlier(left: Semver, right: Semver) -> bool:
    """Return whether one is earlier than the other."""
    return left.key < right.key


def compare_versions(left: Semver, right: Semver) -> int:
    """Return -1, 0 or 1."""
    return (left.key > right.key) - (left.key < right.key)


READERS: Final = (string_to_semver, string_bool_to_semver, is_semver_string, is_semver_string_bool)
"""Functions whose work depends on the length of their text."""
