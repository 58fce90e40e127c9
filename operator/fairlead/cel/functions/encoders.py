"""Base64."""

import re
from base64 import b64decode, b64encode
from typing import Final

from fairlead.cel.errors import CelError, Kind
from fairlead.cel.functions.conversions import ASCII_SPACE

_WITHOUT_SPACE: Final = {ord(character): None for character in ASCII_SPACE}
_ENCODED: Final = re.compile(r"([A-Za-z0-9+/]*)([=.]*)")
_GROUP: Final = 4


def base64_encode_bytes(value: bytes) -> str:
    """Encode with padding."""
    return b64encode(value).decode()


def base64_decode_string(text: str) -> bytes:
    """Decode; white space is skipped, padding is complete or absent, and a dot pads too."""
    match = _ENCODED.fullmatch(text.translate(_WITHOUT_SPACE))
    missing = -len(match[1]) % _GROUP if match else _GROUP - 1
    if match is None or missing == _GROUP - 1 or len(match[2]) not in {0, missing}:
        raise CelError(Kind.CONVERSION, "invalid base64 data")
    return b64decode(match[1] + "=" * missing)
