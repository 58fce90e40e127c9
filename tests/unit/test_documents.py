"""Documents: versions of their formats, and content that is left alone."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from fairlead.documents import FORMAT, Document, DocumentTooLargeError, Format


def decode(data: Mapping[str, str]) -> int:
    return int(data.get("number", "0"))


FORM: Final = Format("a number", decode, "delete it, and counting starts over", version=2, bytes_max=10)
NEWER: Final = (
    "ConfigMap x, a number, has format {!r}, and this version of Fairlead reads 2 at most; it is left alone: upgrade"
    " Fairlead, or delete it, and counting starts over"
)
UNREADABLE: Final = (
    "ConfigMap x, a number, cannot be read: invalid literal for int() with base 10: 'y'; it is left alone: restore it,"
    " or delete it, and counting starts over"
)
CASES: Final[dict[str, tuple[Mapping[str, Any] | None, Mapping[str, str], Document[int]]]] = {
    "without a format, as the first version wrote": ({"number": "3"}, {}, Document(3, "", "7")),
    "an older format": ({"number": "3"}, {FORMAT: "1"}, Document(3, "", "7")),
    "the format": ({"number": "3"}, {FORMAT: "2"}, Document(3, "", "7")),
    "without data": (None, {FORMAT: "2"}, Document(0, "", "7")),
    "a newer format": ({"number": "3"}, {FORMAT: "3"}, Document(None, NEWER.format("3"), "7")),
    "a format that is not a number": ({"number": "3"}, {FORMAT: "two"}, Document(None, NEWER.format("two"), "7")),
    "no format at all": ({"number": "3"}, {FORMAT: "0"}, Document(None, NEWER.format("0"), "7")),
    "content that cannot be read": ({"number": "y"}, {FORMAT: "2"}, Document(None, UNREADABLE, "7")),
}


@pytest.mark.parametrize("name", CASES)
def test_document(name: str) -> None:
    data, annotations, want = CASES[name]
    metadata = {"name": "x", "resourceVersion": "7", "annotations": annotations or None}
    assert FORM.read({"kind": "ConfigMap", "metadata": metadata, "data": data}) == want


def test_document_that_does_not_exist() -> None:
    assert FORM.read(None) == Document(None, "", "")


def test_what_is_written_has_its_format_and_is_not_larger_than_the_api_server_takes() -> None:
    assert FORM.annotations() == {FORMAT: "2"}
    FORM.check_size(10)
    with pytest.raises(DocumentTooLargeError, match="a number: 11 bytes, and the API server takes 10"):
        FORM.check_size(11)
